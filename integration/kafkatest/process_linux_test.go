package kafkatest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const beParent = "KAFKATEST_BE_PARENT"

func TestChildDiesWithItsParent(t *testing.T) {
	if os.Getenv(beParent) != "" {
		child, err := startProcess(exec.Command("sleep", "600"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", child.cmd.Process.Pid)
		<-child.done
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), beParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Process.Kill(); parent.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, ok := strings.CutPrefix(strings.TrimSpace(line), "child ")
	if !ok {
		t.Fatalf("the parent says %q, %v; want its child's id", line, err)
	}
	if !lives(pid) {
		t.Fatal("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lives(pid) { // for ever, if it outlives its parent: then the test times out
		time.Sleep(10 * time.Millisecond)
	}
}

// lives reports whether a process runs; one that has ended but that nobody has
// waited for does not.
func lives(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
