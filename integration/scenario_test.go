package integration

import (
	"testing"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streamstest"
)

type scenario struct {
	name string
	run  func(*testing.T, *cluster)
}

// scenarios are the stories that every cluster must tell alike.
var scenarios = []scenario{
	{"WordCount", wordCount},
	{"HandOver", handOver},
	{"RestartGoesOn", restartGoesOn},
	{"ProcessorAPI", processorAPI},
	{"FailingRecord", failingRecord},
	{"PoisonRecords", poisonRecords},
	{"DeadLetterOfFailure", deadLetterOfFailure},
	{"RecordTooLarge", recordTooLarge},
	{"RecordBeyondBuffers", recordBeyondBuffers},
	{"SlowRecords", slowRecords},
	{"Panic", panicking},
	{"MissingSourceTopic", missingSourceTopic},
	{"OtherTopology", otherTopology},
	{"GroupIsDescribed", groupIsDescribed},
	{"TopologyDescription", topologyDescription},
	{"ShutdownApplication", shutdownApplication},
	{"ShutdownByHandler", shutdownByHandler},
	{"ReplaceThread", replaceThread},
	{"StaticMember", staticMember},
	{"SlowProcessor", slowProcessor},
	{"StandbyTakesOver", standbyTakesOver},
	{"RestartReadsTail", restartReadsTail},
	{"OneDirectory", oneDirectory},
	{"DamagedStore", damagedStore},
	{"PausedInstance", pausedInstance},
	{"InOrderOfTime", inOrderOfTime},
	{"KilledOwner", killedOwner},
	{"GlobalTable", globalTable},
}

func TestEmbedded(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			broker, err := streamstest.NewBroker(streamstest.WithTopologyDescriptions())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			s.run(t, newCluster(t, broker.Addrs()))
		})
	}
}

func TestKafka(t *testing.T) {
	kafkatest.Require(t)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			s.run(t, newCluster(t, kafkatest.Shared(t).Addrs()))
		})
	}
}
