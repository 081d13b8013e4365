package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Frame types; see src/README.md.
const (
	frameHello       = 'H'
	frameStart       = 'S'
	frameStdin       = 'I'
	frameCloseStdin  = 'C'
	frameWritten     = 'W'
	frameStdout      = 'O'
	frameStderr      = 'E'
	frameExited      = 'X'
	frameStop        = 'K'
	frameTerminating = 'T'
	frameQuit        = 'Q'
)

const (
	maxFrame = 1 << 20
	// stdinWindow is how much of its input a tool may leave unread before the sidecar has to wait.
	stdinWindow = 1 << 20
)

type frame struct {
	kind    byte
	payload []byte
}

func readFrame(from io.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return frame{}, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxFrame {
		return frame{}, fmt.Errorf("frame %q of %d bytes is over the limit", head[0], length)
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(from, payload); err != nil {
		return frame{}, err
	}
	return frame{head[0], payload}, nil
}

// frameWriter sends whole frames from several goroutines. A write blocks while the sidecar does not read: that is the
// back-pressure on the tool's output.
type frameWriter struct {
	mutex sync.Mutex
	to    io.Writer
}

func (w *frameWriter) send(kind byte, payload []byte) error {
	bytes := make([]byte, 5, 5+len(payload))
	bytes[0] = kind
	binary.BigEndian.PutUint32(bytes[1:], uint32(len(payload)))
	w.mutex.Lock()
	defer w.mutex.Unlock()
	_, err := w.to.Write(append(bytes, payload...))
	return err
}

func (w *frameWriter) sendJSON(kind byte, value any) error {
	payload, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.send(kind, payload)
}
