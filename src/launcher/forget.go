package main

import (
	"os"
	"runtime"
	"syscall"
)

const (
	prSetDumpable       = 4
	prSetChildSubreaper = 36
	prSetNoNewPrivs     = 38
)

// image is what of the image's environment a tool still needs. It travels in the arguments, which hide nothing.
type image struct{ path, home, lang string }

// forget executes this program again with an empty environment: the kernel keeps the one that a process was started
// with readable in /proc, and a container's holds Kubernetes' variables.
func forget(socket string) error {
	// The kernel keeps "no new privileges" by thread; what the executing thread has, all later ones inherit.
	runtime.LockOSThread()
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return err
	}
	arguments := []string{"launcher", "supervise", socket, os.Getenv("PATH"), os.Getenv("HOME"), os.Getenv("LANG")}
	return syscall.Exec("/proc/self/exe", arguments, []string{})
}

// guard keeps the tool, which has this process's user id, out of this process's memory, and makes orphans ours to reap.
func guard() error {
	if err := prctl(prSetDumpable, 0); err != nil {
		return err
	}
	if err := prctl(prSetChildSubreaper, 1); err != nil {
		return err
	}
	// A core file of the tool would hold what it was given.
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

func prctl(option, value uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, value, 0, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}
