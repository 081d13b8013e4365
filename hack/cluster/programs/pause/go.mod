module oz0-operator/hack/cluster/pause

go 1.24.0
