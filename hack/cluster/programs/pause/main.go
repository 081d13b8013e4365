// Pause is the first process of a pod's sandbox and of a machine of the embedded cluster: it holds their namespaces,
// takes leave of orphans, and does nothing else.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for got := range signals {
		if got != syscall.SIGCHLD {
			return
		}
		// One signal may stand for many children.
		for {
			if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
				break
			}
		}
	}
}
