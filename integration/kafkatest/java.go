package kafkatest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// JavaProgram is a program in Java source that runs against Kafka's jars, such
// as a Java Kafka Streams peer.
type JavaProgram struct {
	// Sources is a Java file, or a folder whose Java files, at any depth, are
	// compiled together.
	Sources string

	// Main is the class to run, such as "Peer" or "org.example.Peer".
	Main string

	Args []string

	// JVMOptions, nil for the same quick start as nodes have.
	JVMOptions []string
}

// Java compiles a program against this cluster's version of Kafka, unless the
// cache has it, and starts it. It is not told where the cluster is: pass
// [Kafka.Bootstrap] among its arguments. It is killed when the context ends, so
// a test passes its own ([testing.T.Context]).
//
// Its standard output is kept in memory, line by line; Kafka's logging goes to
// standard error, from level WARN on, whose end is quoted in errors.
func (k *Kafka) Java(ctx context.Context, program JavaProgram) (*JavaProcess, error) {
	classes, err := k.install.compile(ctx, program.Sources, k.config.ExtraClasspath)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: compiling %s: %w", program.Sources, err)
	}
	options := program.JVMOptions
	if options == nil {
		options = quickJVM
	}
	java := k.java(options, "warn")
	java.classpath = classes + string(os.PathListSeparator) + java.classpath
	cmd := java.cmd(ctx, program.Main, program.Args...)
	p := &JavaProcess{name: program.Main}
	p.stdout.changed = make(chan struct{})
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("kafkatest: starting %s: %w", program.Main, err)
	}
	if p.proc, err = startProcess(cmd); err != nil {
		return nil, fmt.Errorf("kafkatest: starting %s: %w", program.Main, err)
	}
	return p, nil
}

// compile returns the folder of a program's classes. The cache knows it by the
// sources' names and contents and by what they are compiled against.
func (in installation) compile(ctx context.Context, sources string, extra []string) (string, error) {
	sources, err := filepath.Abs(sources)
	if err != nil {
		return "", err
	}
	var files []string
	key := sha256.New()
	fmt.Fprintf(key, "%s\n%q\n", in.lib, extra)
	err = filepath.WalkDir(sources, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".java" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(sources, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(key, "%q %d\n%s\n", filepath.ToSlash(relative), len(data), data)
		files = append(files, name)
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("no Java files there")
	}
	dir := filepath.Join(in.cache, "java-"+hex.EncodeToString(key.Sum(nil)[:12]))
	return dir, build(ctx, dir, func(temp string) error {
		args := []string{"--release", fmt.Sprint(minJava), "-nowarn", "-cp", in.classpath(extra...), "-d", temp}
		_, err := run(exec.CommandContext(ctx, "javac", append(args, files...)...))
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%w: a Java runtime is not enough, install a JDK", err)
		}
		return err
	})
}

// JavaProcess is a Java program that was started. Its methods may be called at
// the same time, but lines go to one reader: see [JavaProcess.Next].
type JavaProcess struct {
	name   string
	proc   *process
	stdin  io.WriteCloser
	stdout lines
	stderr tailBuffer
}

// Pid returns the process id.
func (p *JavaProcess) Pid() int { return p.proc.cmd.Process.Pid }

// Send writes a line to the program's standard input.
func (p *JavaProcess) Send(line string) error {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return fmt.Errorf("kafkatest: writing to %s: %w", p.name, err)
	}
	return nil
}

// CloseInput ends the program's standard input.
func (p *JavaProcess) CloseInput() error { return p.stdin.Close() }

// Signal sends the program a signal, such as SIGSTOP. The error is
// [os.ErrProcessDone] if it has ended.
func (p *JavaProcess) Signal(signal os.Signal) error { return p.proc.cmd.Process.Signal(signal) }

// Kill ends the program as kill -9 does, and returns when it has ended.
func (p *JavaProcess) Kill() { p.proc.kill() }

// Wait waits until the program ends. The error is nil if it ended with exit
// status 0; otherwise it wraps an [*os/exec.ExitError] and quotes the end of
// standard error. If the context ends first, the error wraps its cause, and the
// program goes on.
func (p *JavaProcess) Wait(ctx context.Context) error {
	select {
	case <-p.proc.done:
		if p.proc.err != nil {
			return fmt.Errorf("kafkatest: %s: %w\n%s", p.name, p.proc.err, p.Stderr())
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kafkatest: %s still runs: %w", p.name, context.Cause(ctx))
	}
}

// Lines returns all lines that the program has written to standard output, read
// by Next or not.
func (p *JavaProcess) Lines() []string { return p.stdout.all(!p.proc.running()) }

// Stderr returns the end of what the program has written to standard error.
func (p *JavaProcess) Stderr() string { return p.stderr.String() }

// Next returns the program's next line of standard output, waiting for it. The
// error wraps [io.EOF] if the program has ended and all is read, or the
// context's cause, and quotes the end of standard error.
func (p *JavaProcess) Next(ctx context.Context) (string, error) {
	for {
		ended := !p.proc.running() // before looking: no line comes after
		line, ok, changed := p.stdout.next(ended)
		if ok {
			return line, nil
		}
		if ended {
			return "", fmt.Errorf("kafkatest: %s has ended: %w\n%s", p.name, io.EOF, p.Stderr())
		}
		select {
		case <-changed:
		case <-p.proc.done:
		case <-ctx.Done():
			return "", fmt.Errorf("kafkatest: waiting for a line of %s: %w\n%s", p.name, context.Cause(ctx), p.Stderr())
		}
	}
}

// Await reads lines until one for which match is true, and returns it. Lines
// before it are not read again. Errors are those of Next.
func (p *JavaProcess) Await(ctx context.Context, match func(line string) bool) (string, error) {
	for {
		line, err := p.Next(ctx)
		if err != nil || match(line) {
			return line, err
		}
	}
}
