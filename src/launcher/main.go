// Launcher is the first process of a tool's container. It starts the tool when its sidecar says so, with exactly the
// environment that the sidecar gives, and carries the tool's stdin, stdout and stderr over one unix socket. It holds
// nothing of its own, decides nothing, and leaves no process of the tool behind.
//
//	launcher install DEST    copies itself, for the init container
//	launcher run [SOCKET]    the tool container's command
//
// Frames and their order are in src/README.md, "Launcher and sidecar".
package main

import (
	"fmt"
	"os"
)

const defaultSocket = "/oz0/run/launcher.sock"

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "launcher:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) == 1 && args[0] == "run":
		return forget(defaultSocket)
	case len(args) == 2 && args[0] == "run":
		return forget(args[1])
	case len(args) == 5 && args[0] == "supervise":
		return supervise(args[1], image{path: args[2], home: args[3], lang: args[4]})
	}
	return fmt.Errorf("usage: launcher install DEST | run [SOCKET]")
}
