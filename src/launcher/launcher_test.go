package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the launcher too, when it is started with one of its subcommands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sidecar is the other end of a launcher: it accepts connections and speaks frames.
type sidecar struct {
	t        *testing.T
	listener net.Listener
	conn     net.Conn
	command  *exec.Cmd
	exited   chan error
	stderr   bytes.Buffer
}

func launch(t *testing.T) *sidecar {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "launcher.sock")
	return launchCommand(t, socket, exec.Command(os.Args[0], "run", socket))
}

func launchCommand(t *testing.T, socket string, command *exec.Cmd) *sidecar {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(socket, 0o666)
	s := &sidecar{t: t, listener: listener, command: command, exited: make(chan error, 1)}
	s.command.Env = []string{"PATH=/usr/bin:/bin", "HOME=/home/tool", "LANG=C.UTF-8", "KUBERNETES_SERVICE_HOST=10.0.0.1"}
	s.command.Stderr = &s.stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.exited <- s.command.Wait() }()
	t.Cleanup(func() {
		listener.Close()
		s.command.Process.Kill()
		if s.conn != nil {
			s.conn.Close()
		}
	})
	s.accept()
	return s
}

func (s *sidecar) accept() {
	s.t.Helper()
	s.listener.(*net.UnixListener).SetDeadline(time.Now().Add(10 * time.Second))
	conn, err := s.listener.Accept()
	if err != nil {
		s.t.Fatalf("the launcher did not dial: %v; %s", err, s.stderr.String())
	}
	s.conn = conn
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	hello := s.expect(frameHello)
	var content map[string]any
	if json.Unmarshal(hello, &content) != nil || content["path"] != "/usr/bin:/bin" || content["home"] != "/home/tool" {
		s.t.Fatalf("hello %s", hello)
	}
}

func (s *sidecar) send(kind byte, payload string) {
	head := []byte{kind, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload)))
	s.conn.Write(append(head, payload...))
}

func (s *sidecar) start(argv ...string) {
	order, _ := json.Marshal(startOrder{Argv: argv, Env: map[string]string{"PATH": "/usr/bin:/bin", "DECLARED": "yes"}})
	s.send(frameStart, string(order))
}

func (s *sidecar) shell(script string) { s.start("sh", "-c", script) }

// expect returns the next frame of the kind, passing over "written" frames.
func (s *sidecar) expect(kind byte) []byte {
	s.t.Helper()
	for {
		received, err := readFrame(s.conn)
		if err != nil {
			s.t.Fatalf("waiting for %q: %v; %s", kind, err, s.stderr.String())
		}
		if received.kind == kind {
			return received.payload
		}
		if received.kind != frameWritten {
			s.t.Fatalf("waiting for %q, got %q %s", kind, received.kind, received.payload)
		}
	}
}

// untilExit collects stdout and the exit report.
func (s *sidecar) untilExit() (string, exitReport) {
	s.t.Helper()
	var stdout bytes.Buffer
	for {
		received, err := readFrame(s.conn)
		if err != nil {
			s.t.Fatalf("no exit report: %v; %s", err, s.stderr.String())
		}
		switch received.kind {
		case frameStdout:
			stdout.Write(received.payload)
		case frameExited:
			var end exitReport
			if err := json.Unmarshal(received.payload, &end); err != nil {
				s.t.Fatal(err)
			}
			return stdout.String(), end
		}
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if !alive(pid) {
			return
		}
	}
	t.Fatalf("process %d still runs", pid)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFrames(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"over the limit": {'O', 0, 16, 0, 1},
		"broken off":     {'O', 0, 0, 0, 4, 'a'},
		"half a head":    {'O', 0},
	} {
		if _, err := readFrame(strings.NewReader(string(bytes))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	received, err := readFrame(strings.NewReader("O\x00\x00\x00\x02hi"))
	if err != nil || received.kind != frameStdout || string(received.payload) != "hi" {
		t.Errorf("%v %v", received, err)
	}
}

func TestEnvironmentIsWhatWasGivenAndTheLaunchersIsEmpty(t *testing.T) { // [S02]
	s := launch(t)
	s.start("env")
	stdout, end := s.untilExit()
	if stdout != "DECLARED=yes\nPATH=/usr/bin:/bin\n" || end.Code == nil || *end.Code != 0 {
		t.Errorf("%q %+v", stdout, end)
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(s.command.Process.Pid) + "/environ")
	if err != nil || len(environ) != 0 {
		t.Errorf("the launcher's environment: %q %v", environ, err)
	}
}

func TestTheToolCannotLookIntoTheLauncher(t *testing.T) { // [case 78]
	s := launch(t)
	pid := s.command.Process.Pid
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Errorf("%s %v", status, err)
	}
	// What is not dumpable belongs to root, whoever runs it.
	if os.Getuid() == 0 {
		child := exec.Command("sh", "-c", "cat /proc/"+strconv.Itoa(pid)+"/environ && echo readable")
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		if out, _ := child.CombinedOutput(); strings.Contains(string(out), "readable") {
			t.Errorf("another user reads it: %s", out)
		}
	}
	s.shell("grep NoNewPrivs /proc/self/status; grep -c . /proc/self/limits; ulimit -c")
	stdout, _ := s.untilExit()
	if !strings.Contains(stdout, "NoNewPrivs:\t1") || !strings.HasSuffix(stdout, "\n0\n") {
		t.Errorf("%q", stdout)
	}
}

func TestAToolOfTheSameUserReadsNothingOfTheLauncher(t *testing.T) { // [S02] [case 78]
	if os.Getuid() != 0 {
		t.Skip("needs root to be another user")
	}
	folder, err := os.MkdirTemp("", "launcher")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	os.Chmod(folder, 0o755)
	program, socket := filepath.Join(folder, "launcher"), filepath.Join(folder, "launcher.sock")
	if out, err := exec.Command(os.Args[0], "install", program).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	command := exec.Command(program, "run", socket)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	s := launchCommand(t, socket, command)
	s.shell(`id -u; for file in environ mem maps fd/3 root/etc/hosts; do cat /proc/$PPID/$file > /dev/null 2>&1 && echo "reads $file"; done`)
	if stdout, _ := s.untilExit(); !strings.HasPrefix(stdout, "65532\n") || strings.Contains(stdout, "reads") {
		t.Errorf("%q", stdout)
	}
}

func TestInputReachesTheToolFromItsFirstByte(t *testing.T) {
	s := launch(t)
	s.start("cat")
	s.send(frameStdin, "first\n")
	s.send(frameStdin, strings.Repeat("x", 200_000))
	s.send(frameCloseStdin, "")
	stdout, _ := s.untilExit()
	if !strings.HasPrefix(stdout, "first\n") || len(stdout) != 200_006 {
		t.Errorf("%d bytes", len(stdout))
	}
}

func TestExits(t *testing.T) { // [S08]
	s := launch(t)
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"sh", "-c", "exit 7"}, `{"code":7}`},
		{[]string{"sh", "-c", "kill -SEGV $$"}, `{"signal":"SIGSEGV"}`},
		{[]string{"no-such-program"}, `{"problem":"\"no-such-program\" is not on the PATH \"/usr/bin:/bin\""}`},
		{[]string{"/etc/passwd"}, `{"problem":"cannot start \"/etc/passwd\": permission denied"}`},
		{nil, `{"problem":"no command"}`},
	} {
		s.start(c.argv...)
		_, end := s.untilExit()
		if got, _ := json.Marshal(end); string(got) != c.want {
			t.Errorf("%v: %s", c.argv, got)
		}
		s.accept() // dials again
	}
}

func TestOutputBeforeTheExitIsWhole(t *testing.T) {
	s := launch(t)
	s.shell("head -c 3000000 /dev/zero; exit 3")
	stdout, end := s.untilExit()
	if len(stdout) != 3_000_000 || *end.Code != 3 {
		t.Errorf("%d bytes, %+v", len(stdout), end)
	}
}

func TestNothingOutlivesTheTool(t *testing.T) { // [S08] [case 11]
	s := launch(t)
	// A child in a session of its own that holds the pipe, ignores SIGTERM and forks for ever.
	s.shell(`setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1000 & sleep 0.01; done' & sleep 0.3`)
	stdout, end := s.untilExit()
	if end.Code == nil {
		t.Errorf("%+v", end)
	}
	gone(t, number(t, stdout))
	if left := childrenOf(s.command.Process.Pid); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	s := launch(t)
	s.shell(`i=0; while [ $i -lt 50 ]; do (sleep 0.01 &); i=$((i+1)); done; sleep 0.5; echo done; sleep 30`)
	s.expect(frameStdout)
	if left := childrenOf(s.command.Process.Pid); len(left) != 1 {
		t.Errorf("children: %v", left)
	}
}

func TestStopEscalates(t *testing.T) { // [S08]
	s := launch(t)
	s.shell(`trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	s.expect(frameStdout)
	begun := time.Now()
	s.send(frameStop, `{"graceMs": 300}`)
	_, end := s.untilExit()
	if took := time.Since(begun); end.Signal != "SIGKILL" || took < 300*time.Millisecond || took > 3*time.Second {
		t.Errorf("%+v after %v", end, took)
	}
}

func TestStopIsHeardThoughTheToolReadsNothing(t *testing.T) {
	s := launch(t)
	s.shell(`echo ready; exec sleep 1000`)
	s.expect(frameStdout)
	s.send(frameStdin, strings.Repeat("x", 900_000))
	s.send(frameStop, `{"graceMs": 2000}`)
	if _, end := s.untilExit(); end.Signal != "SIGTERM" {
		t.Errorf("%+v", end)
	}
}

func TestMoreInputThanTheWindowEndsTheConnection(t *testing.T) {
	s := launch(t)
	s.shell(`echo $$; exec sleep 1000`)
	pid := number(t, string(s.expect(frameStdout)))
	flooding := &sidecar{conn: s.conn}
	go func() {
		for range 4 {
			flooding.send(frameStdin, strings.Repeat("x", 900_000))
		}
	}()
	gone(t, pid)
	s.accept()
}

func TestDisconnectEndsTheToolAndDialsAgain(t *testing.T) {
	s := launch(t)
	s.shell(`trap "" TERM; echo $$; while :; do sleep 0.05; done`)
	pid := number(t, string(s.expect(frameStdout)))
	s.conn.Close()
	s.accept()
	if alive(pid) {
		t.Error("the next connection came before the last tool's end")
	}
	s.start("true")
	if _, end := s.untilExit(); end.Code == nil {
		t.Errorf("%+v", end)
	}
}

func TestFloodWaitsForItsReader(t *testing.T) {
	s := launch(t)
	s.shell(`echo $$; exec cat /dev/zero`)
	s.expect(frameStdout)
	time.Sleep(300 * time.Millisecond)
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(s.command.Process.Pid) + "/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			if kb := number(t, strings.TrimSuffix(strings.TrimPrefix(line, "VmRSS:"), "kB")); kb > 32_000 {
				t.Errorf("%d kB while nobody reads", kb)
			}
		}
	}
	s.send(frameStop, `{"graceMs": 0}`)
	s.untilExit()
}

func TestTermination(t *testing.T) {
	s := launch(t)
	s.shell(`echo ready; exec sleep 1000`)
	s.expect(frameStdout)
	s.command.Process.Signal(syscall.SIGTERM)
	s.expect(frameTerminating)
	s.send(frameStop, `{"graceMs": 1000}`)
	if _, end := s.untilExit(); end.Signal != "SIGTERM" {
		t.Errorf("%+v", end)
	}
	s.accept()
	s.expect(frameTerminating) // said again on each connection
	s.send(frameQuit, "")
	select {
	case err := <-s.exited:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("does not quit")
	}
}

func TestAsTheFirstProcessOfItsNamespace(t *testing.T) { // [S08]
	if os.Getuid() != 0 {
		t.Skip("needs root to make a namespace of processes")
	}
	folder := t.TempDir()
	socket, beats := filepath.Join(folder, "launcher.sock"), filepath.Join(folder, "beats")
	command := exec.Command(os.Args[0], "run", socket)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	s := launchCommand(t, socket, command)
	s.shell(`echo $PPID; setsid sh -c 'trap "" TERM; while :; do echo beat >> ` + beats + `; sleep 0.01 & sleep 0.01; done' & kill -STOP 1; kill -KILL 1; sleep 0.3; exit 4`)
	stdout, end := s.untilExit()
	if stdout != "1\n" || end.Code == nil || *end.Code != 4 {
		t.Fatalf("%q %+v", stdout, end)
	}
	before, _ := os.Stat(beats)
	time.Sleep(100 * time.Millisecond)
	if after, err := os.Stat(beats); err != nil || before.Size() == 0 || after.Size() != before.Size() {
		t.Errorf("it still writes: %v %v", before, after)
	}
	s.accept()
	command.Process.Signal(syscall.SIGTERM)
	s.expect(frameTerminating)
	s.send(frameQuit, "")
	if err := <-s.exited; err != nil {
		t.Error(err)
	}
}

func TestProtocolErrorsEndTheConnection(t *testing.T) {
	s := launch(t)
	for _, frame := range []struct{ kind, payload string }{{"Z", ""}, {"S", "{"}} {
		s.send(frame.kind[0], frame.payload)
		if _, err := readFrame(s.conn); err == nil {
			t.Error("still served")
		}
		s.accept()
	}
}

func TestInstall(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "launcher")
	for range 2 { // an init container may be run again
		if out, err := exec.Command(os.Args[0], "install", dest).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if info, err := os.Stat(dest); err != nil || info.Mode() != 0o555 {
		t.Errorf("%v %v", info, err)
	}
}
