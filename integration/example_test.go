package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streamstest"
)

// exampleBinary builds a program of examples/ once per test run.
var exampleBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "odradek-example-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "wordcount")
	out, err := exec.Command("go", "build", "-o", binary, "../examples/wordcount").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the example: %w\n%s", err, out)
	}
	return binary, nil
})

// process is a run of the example.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{}
	err            error
}

func example(t *testing.T, args ...string) *process {
	t.Helper()
	binary, err := exampleBinary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.done
	})
	return p
}

// wait waits until the example has ended and returns its exit status.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("wordcount %q does not end", p.Args[1:])
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		t.Fatal(p.err)
	}
	return p.ProcessState.ExitCode()
}

// wordTable is what the example has to print for a text.
func wordTable(text string) string {
	counts := make(map[string]int)
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		counts[strings.ToLower(word)]++
	}
	var lines []string
	for word, n := range counts {
		lines = append(lines, fmt.Sprintf("%s\t%d\n", word, n))
	}
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, '\t')], b[:strings.IndexByte(b, '\t')])
	})
	return strings.Join(lines, "")
}

var oddTexts = map[string]string{
	"empty":            "",
	"no final newline": "a b\nA",
	"blank lines":      "\n\n a \n\n",
	"one long line":    strings.Repeat("word and another ", 200_000),
	"not utf-8":        "a\xffb \xe2\x82 caf\xc3\xa9 \xed\xa0\x80x\nÉ é e\u0301 Ǆ ß ＡＢＣ 一二三 ٣ Ⅷ x²\r\n\x00y",
	"letters at odds":  "İstanbul ıstanbul İSTANBUL ΣΊΣΥΦΟΣ σίσυφος straße STRASSE\n",
}

func TestExampleEmbedded(t *testing.T) {
	for name, text := range oddTexts {
		t.Run(name, func(t *testing.T) {
			p := example(t, "-input", writeFile(t, text), "-once")
			if code := p.wait(t); code != 0 || p.stdout.String() != wordTable(text) {
				t.Errorf("status %d, printed %.300q, want %.300q\n%s", code, p.stdout.String(), wordTable(text), &p.stderr)
			}
		})
	}
	t.Run("as it is", func(t *testing.T) {
		p := example(t)
		if code := p.wait(t); code != 0 || !strings.Contains(p.stdout.String(), "\ntotals:\n") {
			t.Errorf("status %d, printed %q\n%s", code, &p.stdout, &p.stderr)
		}
	})
}

// TestExampleKafka: the example on real Kafka, as one program, and then as two
// of which one is told to stop half-way and started again.
func TestExampleKafka(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	c := newCluster(t, kafka.Addrs())
	args := func(more ...string) []string {
		return append(more, "-brokers", strings.Join(c.brokers, ","), "-application-id", c.id,
			"-input-topic", c.id+"-in", "-output-topic", c.id+"-out")
	}
	var all string
	for name, text := range oddTexts {
		all += "\n" + text
		p := example(t, args("-input", writeFile(t, text), "-once", "-threads", "2")...)
		if code := p.wait(t); code != 0 || p.stdout.String() != wordTable(all) {
			t.Fatalf("%s: status %d, printed %.300q, want %.300q\n%s", name, code, p.stdout.String(), wordTable(all), &p.stderr)
		}
	}

	first, second := example(t, args()...), example(t, args()...)
	eventually(t, "two members", func() error {
		group, err := c.describe(t)
		if err == nil && (len(group.Members) != 2 || len(group.Members[0].Assignment.ActiveTasks) == 0 || len(group.Members[1].Assignment.ActiveTasks) == 0) {
			err = fmt.Errorf("members are %+v", group.Members)
		}
		return err
	})
	describe, err := kafka.Tool(t.Context(), "org.apache.kafka.tools.streams.StreamsGroupCommand",
		"--bootstrap-server", strings.Join(c.brokers, ","), "--describe", "--group", c.id, "--members", "--verbose")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"0:[", "1:["} {
		if !strings.Contains(describe, task) {
			t.Errorf("Kafka's tool does not show tasks of subtopology %s…:\n%s", task, describe)
		}
	}

	lines, _ := text(20_000)
	for i, part := range chunks(lines, 20) {
		c.produce(t, c.id+"-in", part...)
		all += "\n" + strings.Join(part, "\n")
		switch i {
		case 5:
			second.Process.Signal(syscall.SIGTERM)
		case 12:
			if code := second.wait(t); code != 0 {
				t.Fatalf("stopped with status %d\n%s", code, &second.stderr)
			}
			second = example(t, args()...)
		}
	}
	last := example(t, args("-once")...)
	if code := last.wait(t); code != 0 || last.stdout.String() != wordTable(all) {
		t.Errorf("status %d, printed %.300q, want %.300q\n%s", code, last.stdout.String(), wordTable(all), &last.stderr)
	}
	first.Process.Signal(syscall.SIGINT)
	if code := first.wait(t); code != 0 {
		t.Errorf("interrupted with status %d\n%s", code, &first.stderr)
	}
}

// TestKilledInstance: when a process dies without a word, the others take over
// after the session time-out, and nothing is lost.
func TestKilledInstance(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	c := newCluster(t, kafka.Addrs())
	args := []string{"-brokers", strings.Join(c.brokers, ","), "-application-id", c.id, "-input-topic", c.id + "-in", "-output-topic", c.id + "-out"}
	victim := example(t, args...)
	eventually(t, "a member with tasks", func() error {
		group, err := c.describe(t)
		if err == nil && (len(group.Members) != 1 || len(group.Members[0].Assignment.ActiveTasks) == 0) {
			err = fmt.Errorf("members are %+v", group.Members)
		}
		return err
	})
	lines, want := text(5000)
	for i, part := range chunks(lines, 10) {
		c.produce(t, c.id+"-in", part...)
		if i == 5 {
			victim.Process.Kill()
		}
	}
	p := example(t, append(args, "-once")...)
	if code := p.wait(t); code != 0 {
		t.Fatalf("status %d\n%s", code, &p.stderr)
	}
	for word, n := range want {
		// At least once: what the victim had counted and not committed counts again.
		var got int64
		for line := range strings.Lines(p.stdout.String()) {
			if w, _, _ := strings.Cut(line, "\t"); w == word {
				fmt.Sscanf(line, word+"\t%d", &got)
			}
		}
		if got < n {
			t.Errorf("%q is counted %d times, of %d", word, got, n)
		}
	}
}

// TestExampleErrors: what can't work ends with one line that says why.
func TestExampleErrors(t *testing.T) {
	old, err := streamstest.NewBroker(streamstest.WithoutStreamsGroups())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for _, e := range []struct {
		args []string
		says []string
	}{
		{[]string{"-brokers", "localhost:1"}, []string{"localhost:1", "refused", "-brokers"}},
		{[]string{"-brokers", strings.Join(old.Addrs(), ",")}, []string{"4.1"}},
		{[]string{"-input", "no-such-file"}, []string{"no-such-file", "-input"}},
		{[]string{"-input", "."}, []string{"directory", "-input"}},
		{[]string{"-threads", "0"}, []string{"-threads"}},
		{[]string{"-partitions", "-1"}, []string{"-partitions"}},
		{[]string{"file"}, []string{"file", "-input"}},
	} {
		t.Run(strings.Join(e.args, " "), func(t *testing.T) {
			p := example(t, e.args...)
			code := p.wait(t)
			checkError(t, p, code, e.says...)
		})
	}
}

// TestExampleOldKafka: a broker from before streams groups.
func TestExampleOldKafka(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.New(t, kafkatest.Config{Version: "4.0.0"})
	p := example(t, "-brokers", strings.Join(kafka.Addrs(), ","), "-once")
	checkError(t, p, p.wait(t), "4.1")
}

// TestExampleTopicGoes: the input topic is deleted under a running instance.
func TestExampleTopicGoes(t *testing.T) {
	kafkatest.Require(t)
	c := newCluster(t, kafkatest.Shared(t).Addrs())
	p := example(t, "-brokers", strings.Join(c.brokers, ","), "-application-id", c.id, "-input-topic", c.id+"-in", "-output-topic", c.id+"-out")
	eventually(t, "a group that runs", func() error {
		group, err := c.describe(t)
		if err == nil && group.State != "Stable" {
			err = fmt.Errorf("it is %s", group.State)
		}
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.adm.DeleteTopics(ctx, c.id+"-in"); err != nil {
		t.Fatal(err)
	}
	checkError(t, p, p.wait(t), c.id+"-in", "missing")
}

// checkError checks that a failed run's last line, and only one, is the error.
func checkError(t *testing.T, p *process, code int, says ...string) {
	t.Helper()
	text := strings.TrimSpace(p.stderr.String())
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if code == 0 || !strings.HasPrefix(last, "wordcount: ") || p.stdout.Len() > 0 {
		t.Errorf("status %d, said\n%s\nand printed %q", code, text, &p.stdout)
	}
	for _, word := range says {
		if !strings.Contains(last, word) {
			t.Errorf("%q does not say %q", last, word)
		}
	}
	if strings.Contains(text, "goroutine ") {
		t.Errorf("it crashed:\n%s", text)
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
