package kafkatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// envChild holds a child's job; where it is set this program is a [Child].
const envChild = "ODRADEK_CHILD"

// Child is this program once more, as a process of its own that is told a job, such as
// an application that a test kills. It can be started again when it has ended.
type Child struct {
	// Job is what it is told, as JSON: see [BeChild].
	Job any

	// Log is the file that what it prints is appended to.
	Log string

	proc *process // nil: it was not started, or was ended
}

// BeChild does the job, and ends the program, where that is a [Child]. It returns where
// it is not. Call it before all else in main, and in TestMain. A child whose parent has
// gone ends.
func BeChild[J any](do func(job J) error) {
	text, is := os.LookupEnv(envChild)
	if !is {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // which the parent holds open
		os.Exit(1)
	}()
	var job J
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = do(job)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Start starts the child.
func (c *Child) Start() error {
	text, err := json.Marshal(c.Job)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envChild+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	c.proc, err = startProcess(cmd)
	return err
}

var errNoChild = errors.New("the child doesn't run")

// Signal sends a signal to the child.
func (c *Child) Signal(s os.Signal) error {
	if c.proc == nil {
		return errNoChild
	}
	return c.proc.cmd.Process.Signal(s)
}

// Stop asks the child to end, and waits until it has. It is an error if it does not do so
// within patience, after which it is killed, or ends with one.
func (c *Child) Stop(patience time.Duration) error {
	proc := c.proc
	if proc == nil {
		return errNoChild
	}
	c.proc = nil
	if err := errors.Join(proc.stop(patience), proc.err); err != nil {
		return fmt.Errorf("a child was asked to end: %w; see %s", err, c.Log)
	}
	return nil
}

// Kill ends the child without giving it a say, if it runs.
func (c *Child) Kill() {
	if c.proc != nil {
		c.proc.kill()
		c.proc = nil
	}
}

// Lives is an error if the child has ended by itself.
func (c *Child) Lives() error {
	if c.proc == nil || c.proc.running() {
		return nil
	}
	proc := c.proc
	c.proc = nil
	return fmt.Errorf("a child ended by itself (%v); its log %s ends:\n%s", proc.cmd.ProcessState, c.Log, tailFile(c.Log, 20))
}
