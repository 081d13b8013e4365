module oz0.ai/launcher

go 1.26
