package streamstest

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A hook answers a request (true), or leaves it to kfake (false), perhaps changed. node is the node that received the
// request. The files named after request keys hold one hook each.
type hook func(b *Broker, node int32, req kmsg.Request) (kmsg.Response, bool, error)

var hooks = map[int16]hook{
	8:  (*Broker).offsetCommit,
	9:  (*Broker).offsetFetch,
	11: (*Broker).joinGroup,
	15: (*Broker).describeGroups,
	16: (*Broker).listGroups,
	18: (*Broker).apiVersions,
	28: (*Broker).txnOffsetCommit,
	32: (*Broker).describeConfigs,
	42: (*Broker).deleteGroups,
	44: (*Broker).incrementalAlterConfigs,
	47: (*Broker).offsetDelete,
	57: (*Broker).updateFeatures,
	60: (*Broker).describeCluster,
	68: (*Broker).consumerGroupHeartbeat,
	76: (*Broker).shareGroupHeartbeat,
	88: (*Broker).streamsGroupHeartbeat,
	89: (*Broker).streamsGroupDescribe,
	93: (*Broker).topologyDescriptionUpdate,
}

// control is kfake's control function for every request. It runs on a goroutine of its own while kfake's loop waits
// for it, so it may ask the cluster for topics and groups, until it has slept (see sleeping).
func (b *Broker) control(req kmsg.Request) (kmsg.Response, error, bool) {
	b.cluster.KeepControl()
	h, ok := hooks[req.Key()]
	if !ok || isAsked(req) {
		return nil, nil, false
	}
	resp, answered, err := h(b, b.cluster.CurrentNode(), req)
	return resp, err, answered
}

// askedTag marks a request of the asker. Kafka ignores tags that it does not know.
const askedTag = 0x0dad

func isAsked(req kmsg.Request) bool {
	tags := tagsOf(req)
	if tags == nil || tags.Len() == 0 {
		return false
	}
	found := false
	tags.Each(func(key uint32, _ []byte) { found = found || key == askedTag })
	return found
}

// unsupported closes the connection, as kfake does for versions that it has not announced.
func unsupported(req kmsg.Request) (kmsg.Response, bool, error) {
	return nil, true, fmt.Errorf("%s version %d is not supported", kmsg.NameForKey(req.Key()), req.GetVersion())
}

// isStreams reports whether there is a streams group of that id.
func (b *Broker) isStreams(group string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.groups.Exists(group)
}

// refuse is the answer to a member of another kind of group that wants the id of a streams group.
func refuse(group, kind string) (int16, *string) {
	return kerr.GroupIDNotFound.Code, kmsg.StringPtr(fmt.Sprintf("Group %s is not a %s group.", group, kind))
}
