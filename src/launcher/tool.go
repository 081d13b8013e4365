package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type startOrder struct {
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env"`
	Cwd  string            `json:"cwd,omitempty"`
}

type exitReport struct {
	Code    *int   `json:"code,omitempty"`
	Signal  string `json:"signal,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// tool is a running process of the tool, the leader of a group of its own.
type tool struct {
	pid    int
	ended  <-chan syscall.WaitStatus
	out    sync.WaitGroup
	outEnd []*os.File

	// Used by the serving goroutine alone, but for what feed takes out.
	stdin       chan []byte
	inputClosed bool
	waiting     atomic.Int64
}

// startTool starts the process; out carries its output and what it took of its input.
func startTool(order startOrder, imagePath string, kids *children, out *frameWriter) (*tool, error) {
	program, err := lookUp(order, imagePath)
	if err != nil {
		return nil, err
	}
	var pipes [3][2]*os.File
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	theirs := []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]}
	environment := make([]string, 0, len(order.Env))
	for name, value := range order.Env {
		environment = append(environment, name+"="+value)
	}
	sort.Strings(environment)
	pid, ended, err := kids.start(func() (int, error) {
		return syscall.ForkExec(program, order.Argv, &syscall.ProcAttr{
			Dir:   order.Cwd,
			Env:   environment,
			Files: []uintptr{theirs[0].Fd(), theirs[1].Fd(), theirs[2].Fd()},
			Sys:   &syscall.SysProcAttr{Setpgid: true},
		})
	})
	for _, file := range theirs {
		file.Close()
	}
	if err != nil {
		for _, file := range []*os.File{pipes[0][1], pipes[1][0], pipes[2][0]} {
			file.Close()
		}
		return nil, fmt.Errorf("cannot start %q: %w", program, err)
	}
	t := &tool{pid: pid, ended: ended, stdin: make(chan []byte, 1024), outEnd: []*os.File{pipes[1][0], pipes[2][0]}}
	go t.feed(pipes[0][1], out)
	t.out.Add(2)
	go t.carry(pipes[1][0], frameStdout, out)
	go t.carry(pipes[2][0], frameStderr, out)
	return t, nil
}

// lookUp finds a program as a shell would, on the PATH that the tool is given, else the image's.
func lookUp(order startOrder, imagePath string) (string, error) {
	if len(order.Argv) == 0 || order.Argv[0] == "" {
		return "", errors.New("no command")
	}
	name := order.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path, given := order.Env["PATH"]
	if !given {
		path = imagePath
	}
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%q is not on the PATH %q", name, path)
}

// give queues input; false is more than the window allows.
func (t *tool) give(bytes []byte) bool {
	if t.inputClosed {
		return true
	}
	if t.waiting.Add(int64(len(bytes))) > stdinWindow {
		return false
	}
	select {
	case t.stdin <- bytes:
		return true
	default:
		return false
	}
}

// closeInput ends the tool's input after what is queued.
func (t *tool) closeInput() {
	if !t.inputClosed {
		t.inputClosed = true
		close(t.stdin)
	}
}

// feed writes the queued input and reports what the tool took. Input that a tool no longer reads is dropped: its exit
// tells the rest.
func (t *tool) feed(to *os.File, out *frameWriter) {
	broken := false
	for bytes := range t.stdin {
		if !broken {
			_, err := to.Write(bytes)
			broken = err != nil
		}
		t.waiting.Add(-int64(len(bytes)))
		n := len(bytes)
		out.send(frameWritten, []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	to.Close()
}

func (t *tool) carry(from *os.File, kind byte, out *frameWriter) {
	defer t.out.Done()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && out.send(kind, buffer[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the last of the output, which whoever holds a pipe's other end cannot prolong for ever.
func (t *tool) finish(bound time.Duration) {
	done := make(chan struct{})
	go func() {
		t.out.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(bound):
	}
	for _, file := range t.outEnd {
		file.Close()
	}
}

func report(status syscall.WaitStatus) exitReport {
	if status.Signaled() {
		return exitReport{Signal: signalName(status.Signal())}
	}
	code := status.ExitStatus()
	return exitReport{Code: &code}
}

func signalName(signal syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE", syscall.SIGHUP: "SIGHUP",
		syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE",
		syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
	}
	if name, ok := names[signal]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", int(signal))
}
