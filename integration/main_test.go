package integration

import (
	"testing"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }
