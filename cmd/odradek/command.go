package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// command is one command of the program.
type command struct {
	name  string // such as "group describe"
	args  string // what follows it, beside flags: "GROUP", or empty
	short string // for the list of commands
	long  string // for its own help
	// new defines the command's flags, and returns what runs it once they are
	// parsed. arg is the argument, empty where the command takes none.
	new func(f *flag.FlagSet) func(ctx context.Context, e *env, arg string) error
}

// env is what a command runs in.
type env struct {
	stdout, stderr io.Writer
	connection     connection
}

// note tells the user something that isn't the command's output.
func (e *env) note(format string, args ...any) { fmt.Fprintf(e.stderr, format+"\n", args...) }

// dispatch finds the command and runs it.
func dispatch(ctx context.Context, args []string, e *env) error {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "-h")
	}
	words := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if words < 0 {
		words = len(args)
	}
	for _, c := range commands {
		name := strings.Fields(c.name)
		if words >= len(name) && slices.Equal(args[:len(name)], name) {
			return c.run(ctx, args[len(name):], e)
		}
	}
	prefix := strings.Join(args[:words], " ")
	known := prefix == "" || slices.ContainsFunc(commands, func(c *command) bool { return strings.HasPrefix(c.name, prefix+" ") })
	switch help := words < len(args) && isHelp(args[words]); {
	case !known:
		return &usageError{"odradek", fmt.Sprintf("there is no command %q", prefix)}
	case help:
		list(e.stdout, prefix)
		return flag.ErrHelp
	case words < len(args):
		return &usageError{"odradek", fmt.Sprintf("%s comes before a command; flags come after it", args[words])}
	default:
		list(e.stderr, prefix)
		return &usageError{"", "a command is needed"}
	}
}

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "--h", "-help", "--help"}, arg) }

// list lists the commands that begin with prefix.
func list(w io.Writer, prefix string) {
	fmt.Fprint(w, "Odradek describes streams groups of Kafka, resets applications, and looks after mirrors.\n\nCommands:\n")
	t := newTable(w)
	for _, c := range commands {
		if strings.HasPrefix(c.name, prefix) {
			t.row("  odradek "+strings.TrimSpace(c.name+" "+c.args), c.short)
		}
	}
	t.flush()
	fmt.Fprint(w, "\nEach has a help of its own: odradek group describe -h\n")
}

// run parses a command's flags and runs it.
func (c *command) run(ctx context.Context, args []string, e *env) error {
	own := flag.NewFlagSet(c.name, flag.ContinueOnError)
	own.SetOutput(io.Discard) // errors are printed once, by main
	run := c.new(own)
	all := flag.NewFlagSet(c.name, flag.ContinueOnError)
	all.SetOutput(io.Discard)
	own.VisitAll(func(f *flag.Flag) { all.Var(f.Value, f.Name, f.Usage) })
	connection := flag.NewFlagSet(c.name, flag.ContinueOnError)
	e.connection.flags(connection)
	connection.VisitAll(func(f *flag.Flag) { all.Var(f.Value, f.Name, f.Usage) })

	positional, err := parse(all, args)
	if errors.Is(err, flag.ErrHelp) {
		c.help(e.stdout, own, connection)
		return err
	}
	me := "odradek " + c.name
	switch {
	case err != nil:
		return &usageError{me, err.Error()}
	case c.args == "" && len(positional) > 0:
		return &usageError{me, fmt.Sprintf("unexpected argument %q", positional[0])}
	case c.args != "" && (len(positional) == 0 || positional[0] == ""):
		return &usageError{me, fmt.Sprintf("%s needs a %s", c.name, c.args)}
	case len(positional) > 1:
		return &usageError{me, fmt.Sprintf("unexpected argument %q after %s %s", positional[1], c.args, positional[0])}
	}
	e.connection.set = make(map[string]bool)
	all.Visit(func(f *flag.Flag) { e.connection.set[f.Name] = true })
	err = run(ctx, e, strings.Join(positional, ""))
	if usage, ok := errors.AsType[*usageError](err); ok && usage.command == "" {
		usage.command = me
	}
	return err
}

// parse parses flags, which may stand before and behind arguments.
func parse(f *flag.FlagSet, args []string) (positional []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		rest := f.Args()
		if len(rest) == 0 {
			return positional, nil
		}
		if i := len(args) - len(rest); i > 0 && args[i-1] == "--" {
			return append(positional, rest...), nil
		}
		positional, args = append(positional, rest[0]), rest[1:]
	}
}

// help prints a command's help.
func (c *command) help(w io.Writer, own, connection *flag.FlagSet) {
	fmt.Fprintf(w, "Usage: odradek %s [flags]\n\n%s\n", strings.TrimSpace(c.name+" "+c.args), strings.TrimSpace(c.long))
	printFlags(w, "Flags", own)
	printFlags(w, "Connection", connection)
}

func printFlags(w io.Writer, title string, f *flag.FlagSet) {
	first := true
	f.VisitAll(func(f *flag.Flag) {
		if first {
			fmt.Fprintf(w, "\n%s:\n", title)
			first = false
		}
		value, usage := flag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(w, "  -%s%s\n      %s\n", f.Name, value, strings.ReplaceAll(usage, "\n", "\n      "))
	})
}

// list of comma-separated words.
type words []string

func (l *words) String() string { return strings.Join(*l, ",") }

func (l *words) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
