package main

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// children reaps every process that is or becomes a child of this one, and tells how the awaited ones ended.
type children struct {
	mutex   sync.Mutex
	awaited map[int]chan syscall.WaitStatus
}

func reapChildren() *children {
	c := &children{awaited: map[int]chan syscall.WaitStatus{}}
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	go func() {
		for range died {
			c.reap()
		}
	}()
	return c
}

// reap collects the dead and reports whether any child is left.
func (c *children) reap() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return err != syscall.ECHILD
		}
		if ended, ok := c.awaited[pid]; ok {
			delete(c.awaited, pid)
			ended <- status
		}
	}
}

// start runs what starts a process; its end is then told once on the channel.
func (c *children) start(fork func() (int, error)) (int, <-chan syscall.WaitStatus, error) {
	// Locked, so that the child cannot be reaped before it is awaited.
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pid, err := fork()
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	c.awaited[pid] = ended
	return pid, ended, nil
}

// killAll kills every descendant and returns when none is left, or after the bound (a process may hang in the kernel).
func (c *children) killAll(group int, bound time.Duration) {
	for deadline := time.Now().Add(bound); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if os.Getpid() == 1 {
			// Everything in the container, in one step that no forking outruns.
			syscall.Kill(-1, syscall.SIGKILL)
		} else {
			syscall.Kill(-group, syscall.SIGKILL)
			for _, pid := range childrenOf(os.Getpid()) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !c.reap() {
			return
		}
	}
}

// childrenOf reads /proc. Orphans of the tool are children of ours, so killing these until none comes ends all.
func childrenOf(parent int) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name, in brackets, may hold anything; the parent is the second field after it.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			found = append(found, pid)
		}
	}
	return found
}
