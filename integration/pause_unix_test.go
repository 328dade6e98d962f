//go:build unix

package integration

import (
	"syscall"
	"testing"
)

func pause(t *testing.T, p *process) { signal(t, p, syscall.SIGSTOP) }
func wake(t *testing.T, p *process)  { signal(t, p, syscall.SIGCONT) }

func signal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
