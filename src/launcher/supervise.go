package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	dialFirst   = 20 * time.Millisecond
	dialLongest = time.Second
	// orphanedFor is how long a launcher that was told to end looks for a sidecar that would tell it when.
	orphanedFor = 10 * time.Second
	// disconnectGrace is what a tool gets to end by itself after its sidecar has gone.
	disconnectGrace = 2 * time.Second
	killBound       = 5 * time.Second
	lastOutput      = 5 * time.Second
)

// supervise dials the sidecar and serves it, connection after connection, until it is told to quit.
func supervise(socket string, from image) error {
	if err := guard(); err != nil {
		return err
	}
	kids := reapChildren()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	terminating := false
	for {
		conn := dial(socket, terminated, &terminating)
		if conn == nil {
			return nil
		}
		quit, err := serve(conn, from, kids, terminated, &terminating)
		conn.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, "launcher:", err)
		}
		if quit {
			return nil
		}
	}
}

// dial retries until it is connected; nil once it was told to end and nobody is there to say more.
func dial(socket string, terminated <-chan os.Signal, terminating *bool) net.Conn {
	var giveUp <-chan time.Time
	for wait := dialFirst; ; wait = min(wait*2, dialLongest) {
		if *terminating && giveUp == nil {
			giveUp = time.After(orphanedFor)
		}
		if conn, err := net.DialTimeout("unix", socket, dialLongest); err == nil {
			return conn
		}
		select {
		case <-time.After(wait):
		case <-terminated:
			*terminating = true
		case <-giveUp:
			return nil
		}
	}
}

// serve runs at most one tool over one connection, and returns when nothing of it is left.
func serve(conn net.Conn, from image, kids *children, terminated <-chan os.Signal, terminating *bool) (quit bool, err error) {
	out := &frameWriter{to: conn}
	// A launcher that was started anew, after one that had been told to end, says that it was not.
	hello := map[string]any{
		"version": 1, "path": from.path, "home": from.home, "lang": from.lang, "terminating": *terminating,
	}
	if err := out.sendJSON(frameHello, hello); err != nil {
		return false, nil
	}
	if *terminating {
		out.send(frameTerminating, nil)
	}
	frames := make(chan frame)
	gone := make(chan error, 1)
	served := make(chan struct{})
	defer close(served)
	go func() {
		for {
			received, err := readFrame(conn)
			if err != nil {
				gone <- err
				return
			}
			select {
			case frames <- received:
			case <-served:
				return
			}
		}
	}()

	var running *tool
	var ended <-chan syscall.WaitStatus
	var killAt time.Time
	var kill <-chan time.Time
	stop := func(grace time.Duration) {
		if running == nil {
			return
		}
		// A second order may only hasten the end.
		if at := time.Now().Add(grace); killAt.IsZero() || at.Before(killAt) {
			killAt = at
			kill = time.After(grace)
		}
		syscall.Kill(-running.pid, syscall.SIGTERM)
	}
	// A tool whose sidecar has gone, or breaks the protocol, is ended; nothing more can be said to anybody.
	abandon := func() {
		conn.Close()
		if running == nil {
			return
		}
		stop(disconnectGrace)
		select {
		case <-ended:
		case <-kill:
		}
		kids.killAll(running.pid, killBound)
		running.closeInput()
		running.finish(lastOutput)
	}

	for {
		select {
		case <-terminated:
			*terminating = true
			// Not here: a sidecar that reads slowly would keep its own orders from being heard.
			go out.send(frameTerminating, nil)

		case <-gone:
			abandon()
			return false, nil

		case <-kill:
			kill = nil
			kids.killAll(running.pid, killBound)

		case status := <-ended:
			// What the tool left behind may hold its pipes, and is of no use without it.
			kids.killAll(running.pid, killBound)
			running.closeInput()
			running.finish(lastOutput)
			conn.SetWriteDeadline(time.Now().Add(lastOutput))
			out.sendJSON(frameExited, report(status))
			return false, nil

		case received := <-frames:
			switch received.kind {
			case frameStart:
				var order startOrder
				if running != nil || json.Unmarshal(received.payload, &order) != nil {
					abandon()
					return false, fmt.Errorf("a start that cannot be followed")
				}
				started, err := startTool(order, from.path, kids, out)
				if err != nil {
					out.sendJSON(frameExited, exitReport{Problem: err.Error()})
					return false, nil
				}
				running, ended = started, started.ended
			case frameStdin:
				if running != nil && !running.give(received.payload) {
					abandon()
					return false, fmt.Errorf("more input than the window allows")
				}
			case frameCloseStdin:
				if running != nil {
					running.closeInput()
				}
			case frameStop:
				var order struct {
					GraceMs int64 `json:"graceMs"`
				}
				if json.Unmarshal(received.payload, &order) != nil || order.GraceMs < 0 {
					order.GraceMs = 0
				}
				stop(time.Duration(order.GraceMs) * time.Millisecond)
			case frameQuit:
				if running != nil {
					kids.killAll(running.pid, killBound)
				}
				return true, nil
			default:
				abandon()
				return false, fmt.Errorf("unknown frame %q", received.kind)
			}
		}
	}
}
