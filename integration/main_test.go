package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(victimEnv); args != "" {
		if err := victim(strings.Fields(args)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	kafkatest.Main(m)
}
