//go:build !unix

package integration

import "testing"

func pause(t *testing.T, _ *process) { t.Skip("this system can't stop a process and go on with it") }
func wake(t *testing.T, _ *process)  {}
