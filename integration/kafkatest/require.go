package kafkatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// EnvRequire is the environment variable that says what a test does that needs
// real Kafka. Unset, it runs where Kafka can be started and skips elsewhere;
// "1" makes it fail where Kafka cannot be started; "0" makes it skip always.
const EnvRequire = "ODRADEK_REQUIRE_KAFKA"

// minJava is the oldest Java that Kafka 4 brokers run on.
const minJava = 17

var javaVersion = regexp.MustCompile(`version "(\d+)`)

var missingOnce = sync.OnceValue(missing)

// missing says what is missing to start Kafka and how to get it, or "".
func missing() string {
	const get = "install a JDK, version 17 or newer, and Maven (Debian: apt-get install default-jdk-headless maven)"
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s is not on PATH: %s", program, get)
		}
	}
	// Asking for the version also finds launchers that have no Java behind them.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("java -version failed: %v: %s: %s", err, strings.TrimSpace(string(out)), get)
	}
	match := javaVersion.FindSubmatch(out)
	if match == nil {
		return fmt.Sprintf("java -version names no version: %s: %s", strings.TrimSpace(string(out)), get)
	}
	if major, err := strconv.Atoi(string(match[1])); err != nil || major < minJava {
		return fmt.Sprintf("Java %s is too old for Kafka: %s", match[1], get)
	}
	return ""
}

// Available reports whether real Kafka can be started on this machine: Java 17
// or newer and Maven are on PATH. Otherwise reason says what is missing and how
// to get it. It does not look at [EnvRequire].
func Available() (reason string, ok bool) {
	reason = missingOnce()
	return reason, reason == ""
}

// Require skips the test where real Kafka cannot be started, saying what is
// missing, or fails it if [EnvRequire] is "1".
func Require(t testing.TB) {
	t.Helper()
	mode := os.Getenv(EnvRequire)
	switch mode {
	case "", "1":
	case "0":
		t.Skipf("SKIPPED, needs real Apache Kafka: %s=0 says not to start it", EnvRequire)
	default:
		t.Fatalf("kafkatest: %s is %q: want 0, 1 or unset", EnvRequire, mode)
	}
	if reason, ok := Available(); !ok {
		if mode == "1" {
			t.Fatalf("kafkatest: %s=1, but real Apache Kafka cannot be started: %s", EnvRequire, reason)
		}
		t.Skipf("SKIPPED, needs real Apache Kafka: %s", reason)
	}
}
