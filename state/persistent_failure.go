package state

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// fatal is what a call of Fatalf becomes on the goroutine of a store's caller.
type fatal struct{ err error }

// errorf keeps the error among args, if there is one, for errors.Is.
func errorf(format string, args []any) error {
	text := fmt.Sprintf(format, args...)
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			return &textError{text, err}
		}
	}
	return errors.New(text)
}

type textError struct {
	text string
	err  error
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.err }

// Fatalf must not return. On a goroutine that came here through a store it
// panics, to be recovered there; one of pebble's own it stops for good.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := errorf(format, args)
	l.failed(err)
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, "(*persistent)") {
			panic(fatal{err})
		}
	}
	select {}
}

// rescue makes a panic of pebble the error of a method.
func (e *persistent) rescue(err *error) {
	switch p := recover().(type) {
	case nil:
		return
	case fatal:
		*err = p.err
	case error:
		*err = p
	default:
		*err = fmt.Errorf("pebble: %v", p)
	}
	e.fail(*err)
	*err = e.failure()
}

// fail ends the engine: from now on all that is asked of it fails. It may be
// called by any goroutine.
func (e *persistent) fail(err error) {
	err = diskError(e.dir, err)
	if e.failed.err.CompareAndSwap(nil, &err) {
		close(e.failed.happened)
	}
}

// failure is what ended the engine, or nil.
func (e *persistent) failure() error {
	if err := e.failed.err.Load(); err != nil {
		return *err
	}
	return nil
}

func diskError(dir string, err error) error {
	var known *DiskError
	if err == nil || errors.As(err, &known) {
		return err
	}
	out := &DiskError{Dir: dir, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		out.Kind = ErrDiskFull
	case pebble.IsCorruptionError(err) || errors.Is(err, os.ErrNotExist):
		out.Kind = ErrCorrupt
	}
	return out
}
