package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child of this process, and does not outlive it where the kernel
// helps. Its goroutine ends when the child does.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // how it ended; set before done is closed
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	cmd.WaitDelay = 5 * time.Second
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel counts the starting thread as the parent, and the
		// runtime may end any thread but one that is locked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the process without giving it a say, and waits until it has ended.
func (p *process) kill() {
	p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

// stop asks the process to end, and kills it if it has not within patience.
// The error says that it had to be killed.
func (p *process) stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			<-p.done
			return nil
		}
		p.kill()
		return fmt.Errorf("killed process %d, which could not be asked to end: %w", p.cmd.Process.Pid, err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("killed process %d, which had not ended %v after it was asked to", p.cmd.Process.Pid, patience)
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// run runs a command to its end and returns its standard output. The error
// wraps the command's, and quotes the end of what it printed.
func run(cmd *exec.Cmd) (stdout string, err error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	p, err := startProcess(cmd)
	if err != nil {
		return "", err
	}
	<-p.done
	if p.err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", cmd.Args[0], p.err, tail(out.String()+errOut.String(), 40))
	}
	return out.String(), nil
}

// tail returns the last lines of text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// tailFile returns the last lines of a file, or says why it can't.
func tailFile(name string, lines int) string {
	const most = 64 << 10
	file, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-most), most))
	if err != nil {
		return err.Error()
	}
	return tail(string(data), lines)
}
