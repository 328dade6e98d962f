package streamstest_test

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/odradek-go/odradek/streamstest"
)

func announced(t *testing.T, cl *kgo.Client) (map[int16]int16, *kmsg.ApiVersionsResponse) {
	t.Helper()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 3
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
	resp := request[*kmsg.ApiVersionsResponse](t, cl, 0, req)
	out := make(map[int16]int16)
	last := int16(-1)
	for _, k := range resp.ApiKeys {
		if k.ApiKey <= last {
			t.Errorf("key %d comes after %d", k.ApiKey, last)
		}
		last = k.ApiKey
		out[k.ApiKey] = k.MaxVersion
	}
	return out, resp
}

func TestAnnouncedVersions(t *testing.T) {
	const none = -1
	for _, test := range []struct {
		name                             string
		opts                             []streamstest.Option
		heartbeat, describe, description int16
	}{
		{"4.4", nil, 1, 1, 0},
		{"4.2", []streamstest.Option{streamstest.WithStreamsGroupVersion(0)}, 0, 0, none},
		{"before", []streamstest.Option{streamstest.WithoutStreamsGroups()}, none, none, none},
		{"old", []streamstest.Option{streamstest.WithoutStreamsGroups(), streamstest.WithKfake(kfake.MaxVersions(kversion.V2_4_0()))}, none, none, none},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, cl := start(t, test.opts...)
			keys, resp := announced(t, cl)
			for key, want := range map[int16]int16{88: test.heartbeat, 89: test.describe, 93: test.description} {
				got, ok := keys[key]
				if !ok {
					got = none
				}
				if got != want {
					t.Errorf("key %d is announced up to %d, want %d", key, got, want)
				}
			}
			if _, ok := keys[0]; !ok {
				t.Error("Produce is gone")
			}
			if test.heartbeat >= 0 && !slices.ContainsFunc(resp.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
				return f.Name == "streams.version" && f.MaxVersionLevel == 1
			}) {
				t.Error("streams.version is not finalized")
			}
		})
	}
}

func TestApiVersionsErrors(t *testing.T) {
	_, cl := start(t, streamstest.WithKfake(kfake.ClusterID("here")))
	ask := func(change func(*kmsg.ApiVersionsRequest)) *kmsg.ApiVersionsResponse {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = 5
		req.ClientSoftwareName, req.ClientSoftwareVersion, req.NodeID = "test", "1", -1
		change(req)
		return request[*kmsg.ApiVersionsResponse](t, cl, 0, req)
	}
	here, elsewhere := "here", "elsewhere"
	for name, test := range map[string]struct {
		change func(*kmsg.ApiVersionsRequest)
		code   int16
	}{
		"plain":         {func(*kmsg.ApiVersionsRequest) {}, 0},
		"right cluster": {func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = &here, 0 }, 0},
		"wrong cluster": {func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = &elsewhere, 0 }, kerr.RebootstrapRequired.Code},
		"no node":       {func(r *kmsg.ApiVersionsRequest) { r.ClusterID = &here }, kerr.InvalidRequest.Code},
		"bad name":      {func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "-" }, kerr.InvalidRequest.Code},
	} {
		if resp := ask(test.change); resp.ErrorCode != test.code {
			t.Errorf("%s: error %d, want %d", name, resp.ErrorCode, test.code)
		}
	}
}

// A finalized feature that changes is announced at its new level.
func TestFeatureUpdatesAreAnnounced(t *testing.T) {
	_, cl := start(t)
	level := func() int16 {
		_, resp := announced(t, cl)
		for _, f := range resp.FinalizedFeatures {
			if f.Name == "transaction.version" {
				return f.MaxVersionLevel
			}
		}
		return 0
	}
	if level() != 2 {
		t.Fatalf("transaction.version is at %d before", level())
	}
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.TimeoutMillis = 1000
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = "transaction.version", 1, 2
	req.FeatureUpdates = append(req.FeatureUpdates, update)
	if resp := request[*kmsg.UpdateFeaturesResponse](t, cl, 0, req); resp.ErrorCode != 0 {
		t.Fatalf("error %d", resp.ErrorCode)
	}
	if level() != 1 {
		t.Errorf("transaction.version is at %d after", level())
	}
}

func TestUnannouncedVersionsCloseTheConnection(t *testing.T) {
	b, cl := start(t, streamstest.WithStreamsGroupVersion(0))
	a := newMember(t, b, cl, "a")
	if resp := a.join(counting()); resp.ErrorCode != 0 || resp.Version != 0 {
		t.Fatalf("version %d, error %d", resp.Version, resp.ErrorCode)
	}
	push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
	push.Group, push.MemberID = group, a.id
	beat := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Version = group, a.id, 1
	describe := kmsg.NewPtrStreamsGroupDescribeRequest()
	describe.Groups, describe.Version = []string{group}, 1
	for _, req := range []kmsg.Request{push, beat, describe} {
		conn, err := net.Dial("tcp", b.Addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s version %d is answered (%d)", kmsg.NameForKey(req.Key()), req.GetVersion(), n)
		}
		conn.Close()
	}
}

// The nodes may listen on anything, if the coordinator is told how to get there.
func TestDialer(t *testing.T) {
	network := new(kfake.VirtualNetwork)
	listen := kfake.ListenFn(func(n, _ string) (net.Listener, error) { return network.Listen(n, "localhost:4711") })
	b, err := streamstest.NewBroker(streamstest.WithKfake(listen, kfake.SeedTopics(4, "in")), streamstest.WithDialer(network.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cl := connect(t, b, kgo.Dialer(network.DialContext))
	a := newMember(t, b, cl, "a")
	a.join(counting())
	settle(t, b, a)

	if b, err := streamstest.NewBroker(streamstest.WithKfake(listen)); err == nil {
		b.Close()
		t.Error("the second broker can listen where the first does")
	}
}

func TestTooOldForStreamsGroups(t *testing.T) {
	b, err := streamstest.NewBroker(streamstest.WithKfake(kfake.MaxVersions(kversion.V2_4_0())))
	if err == nil {
		b.Close()
		t.Fatal("a cluster of Kafka 2.4 cannot have streams groups")
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, opt := range map[string]streamstest.Option{
		"session shorter than heartbeat": streamstest.WithSessionTimeout(time.Millisecond),
		"no heartbeats":                  streamstest.WithHeartbeatInterval(0),
		"too many standbys":              streamstest.WithStandbyReplicas(3),
		"negative lag":                   streamstest.WithWarmups(1, -1),
		"empty groups only":              streamstest.WithMaxGroupSize(0),
		"the same tag twice":             streamstest.WithRackAwareTags("zone", "zone"),
		"no nodes":                       streamstest.WithNodes(0),
	} {
		if b, err := streamstest.NewBroker(opt); err == nil {
			b.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

// The coordinator reaches kfake over TLS and SASL, too.
func TestSecureCluster(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	b, err := streamstest.NewBroker(streamstest.WithKfake(
		kfake.SeedTopics(4, "in"),
		kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "secret"),
	))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cl := connect(t, b,
		kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}),
		kgo.SASL(plain.Auth{User: "user", Pass: "secret"}.AsMechanism()))
	a := newMember(t, b, cl, "a")
	a.join(counting())
	settle(t, b, a)
	if g := listGroups(t, cl, 0)[group]; g.GroupType != "streams" {
		t.Errorf("the group is listed as %+v", g)
	}
}
