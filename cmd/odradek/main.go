package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/odradek-go/odradek/mirror"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
	exitUnsafe  = 3 // the application can't start on the mirror
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	err := dispatch(ctx, args, &env{stdout: out, stderr: stderr})
	if err == nil {
		err = out.err
	}
	usage := new(usageError)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "odradek: %s\n", oneLine(err))
		if usage.command != "" {
			fmt.Fprintf(stderr, "%s -h says more.\n", usage.command)
		}
		return exitUsage
	case errors.Is(err, mirror.ErrUnsafe):
		fmt.Fprintf(stderr, "odradek: %s\n", oneLine(err))
		return exitUnsafe
	default:
		fmt.Fprintf(stderr, "odradek: %s\n", oneLine(err))
		return exitFailure
	}
}

// usageError is a wrong command line.
type usageError struct {
	command string // whose help says more
	reason  string
}

func (e *usageError) Error() string { return e.reason }

// oneLine puts what errors.Join has on lines of their own beside each other.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// output remembers that it could not be written to, such as a pipe that is closed.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
