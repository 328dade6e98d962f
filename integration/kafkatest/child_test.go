package kafkatest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// childJob is what children of the test binary are told.
type childJob struct{ Print, End string }

func childMain(j childJob) error {
	os.Stdout.WriteString(j.Print + "\n")
	if j.End == "fail" {
		return os.ErrInvalid
	}
	if j.End == "" {
		select {} // until it is killed
	}
	return nil
}

func TestChild(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	printed := func(want ...string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			text, err := os.ReadFile(log)
			if err == nil && string(text) == strings.Join(want, "") {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the log is %q (%v), want %q", text, err, want)
			}
		}
	}
	c := &kafkatest.Child{Job: childJob{Print: "one"}, Log: log}
	c.Kill() // it was not started
	if err := c.Lives(); err != nil {
		t.Error(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	printed("one\n")
	if err := c.Lives(); err != nil {
		t.Error(err)
	}
	c.Kill()
	if err := c.Lives(); err != nil {
		t.Errorf("it was killed: %v", err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	printed("one\n", "one\n")
	if err := c.Stop(30 * time.Second); err == nil { // by the signal, which it doesn't handle
		t.Error("a child that ends by a signal has not ended well")
	}
	c.Job = childJob{Print: "two", End: "fail"}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	printed("one\n", "one\n", "two\n", os.ErrInvalid.Error()+"\n")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := c.Lives()
		if err != nil {
			if !strings.Contains(err.Error(), "two") {
				t.Errorf("the error doesn't quote the log: %v", err)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("a child that has ended seems to live")
		}
	}
}
