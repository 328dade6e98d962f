package streamstest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// asker puts requests to kfake itself, past the coordinator, on connections of its own. kfake's control functions run
// before its handlers and do not see their answers; to add to an answer, the coordinator has to ask for it.
type asker struct {
	cluster *kfake.Cluster
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	user    superuser
	tls     bool
	sasl    bool

	mu        sync.Mutex
	addrs     map[int32]string // by node
	clusterID string
}

type superuser struct{ name, password string }

var errClosed = errors.New("the broker was closed")

// probe finds out how to talk to the cluster, and whether it is recent enough.
func (a *asker) probe(addrs []string) error {
	a.addrs = make(map[int32]string)
	for i, addr := range addrs { // as kfake numbers them
		a.addrs[int32(i)] = addr
	}
	versions, err := a.apiVersions()
	if err != nil {
		a.tls = true
		if versions, err = a.apiVersions(); err != nil {
			return fmt.Errorf("reach the embedded cluster (if kfake.ListenFn is set, use WithDialer): %w", err)
		}
	}
	highest := make(map[int16]int16)
	for _, k := range versions.ApiKeys {
		highest[k.ApiKey] = k.MaxVersion
	}
	for _, need := range []struct {
		key     kmsg.Key
		version int16
	}{
		{kmsg.ApiVersions, 3}, {kmsg.OffsetCommit, 8}, {kmsg.OffsetFetch, 8}, {kmsg.ListGroups, 5},
		{kmsg.DescribeGroups, 5}, {kmsg.DeleteGroups, 2}, {kmsg.CreateTopics, 5}, {kmsg.DescribeConfigs, 4},
		{kmsg.IncrementalAlterConfigs, 1},
	} {
		if v, ok := highest[int16(need.key)]; !ok || v < need.version {
			return fmt.Errorf("the cluster's MaxVersions are too old for streams groups, %s is below version %d; for a broker without streams groups use WithoutStreamsGroups",
				need.key.Name(), need.version)
		}
	}
	if _, err := a.metadata(); err != nil {
		a.sasl = true
		if _, err := a.metadata(); err != nil {
			return fmt.Errorf("authenticate at the embedded cluster: %w", err)
		}
	}
	return nil
}

// apiVersions asks for the versions and features that the cluster has. It needs no authentication.
func (a *asker) apiVersions() (*kmsg.ApiVersionsResponse, error) {
	for version := int16(3); ; version = 0 {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		req.ClientSoftwareName, req.ClientSoftwareVersion = "odradek-streamstest", "0"
		var resp *kmsg.ApiVersionsResponse
		err := a.any(func(addr string) error {
			conn, err := a.connect(addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			answer, err := roundTrip(conn, req)
			if err == nil {
				resp = answer.(*kmsg.ApiVersionsResponse)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if resp.ErrorCode != kerr.UnsupportedVersion.Code || version == 0 {
			return resp, kerr.ErrorForCode(resp.ErrorCode)
		}
	}
}

// sleeping runs f, which asks the cluster something, from within a control function. The cluster goes on with other
// connections meanwhile. After it, the caller must not use the cluster any more: it may have been closed.
func sleeping[T any](a *asker, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	a.cluster.SleepControl(func() {
		value, err := f()
		answers <- answer{value, err}
	})
	select {
	case got := <-answers:
		return got.value, got.err
	default:
		var none T
		return none, errClosed
	}
}

// node asks one node, from within a control function.
func (a *asker) node(node int32, req kmsg.Request) (kmsg.Response, error) {
	return sleeping(a, func() (kmsg.Response, error) { return a.ofNode(node, req) })
}

// controller asks the controller, from within a control function.
func (a *asker) controller(req kmsg.Request) (kmsg.Response, error) {
	return sleeping(a, func() (kmsg.Response, error) {
		controller, err := a.metadata()
		if err != nil {
			return nil, err
		}
		return a.ofNode(controller, req)
	})
}

// ofNode asks one node. Nodes come and go, so if it cannot be reached its address is looked up again.
func (a *asker) ofNode(node int32, req kmsg.Request) (kmsg.Response, error) {
	if resp, err := a.on(a.addr(node), req); err == nil {
		return resp, nil
	}
	if _, err := a.metadata(); err != nil {
		return nil, err
	}
	return a.on(a.addr(node), req)
}

func (a *asker) addr(node int32) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.addrs[node]
}

// any tries the nodes until one does what f wants.
func (a *asker) any(f func(addr string) error) error {
	a.mu.Lock()
	addrs := slices.Sorted(maps.Values(a.addrs))
	a.mu.Unlock()
	errs := errors.New("no node answers")
	for _, addr := range addrs {
		err := f(addr)
		if err == nil {
			return nil
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// metadata asks any node which nodes there are, and returns the controller.
func (a *asker) metadata() (controller int32, err error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 7
	req.Topics = []kmsg.MetadataRequestTopic{}
	err = a.any(func(addr string) error {
		answer, err := a.on(addr, req)
		if err != nil {
			return err
		}
		resp := answer.(*kmsg.MetadataResponse)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.addrs = make(map[int32]string)
		for _, b := range resp.Brokers {
			a.addrs[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		}
		if resp.ClusterID != nil {
			a.clusterID = *resp.ClusterID
		}
		controller = resp.ControllerID
		return nil
	})
	return controller, err
}

// cluster id, as metadata has it.
func (a *asker) id() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clusterID
}

// on sends one request on a connection of its own.
func (a *asker) on(addr string, req kmsg.Request) (kmsg.Response, error) {
	conn, err := a.connect(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if a.sasl {
		if err := a.authenticate(conn); err != nil {
			return nil, err
		}
	}
	return roundTrip(conn, req)
}

func (a *asker) connect(addr string) (net.Conn, error) {
	conn, err := a.dial(context.Background(), "tcp", addr)
	if err != nil || !a.tls {
		return conn, err
	}
	// The broker talks to itself here: it need not check who it is.
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), nil //nolint:gosec // see above
}

func (a *asker) authenticate(conn net.Conn) error {
	hello := kmsg.NewPtrSASLHandshakeRequest()
	hello.Version = 1
	hello.Mechanism = "PLAIN"
	if _, err := roundTrip(conn, hello); err != nil {
		return err
	}
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.SASLAuthBytes = []byte("\x00" + a.user.name + "\x00" + a.user.password)
	resp, err := roundTrip(conn, auth)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.SASLAuthenticateResponse).ErrorCode)
}

// roundTrip writes the request and reads its answer. A request that can carry tags is marked as one for kfake alone.
func roundTrip(conn net.Conn, req kmsg.Request) (kmsg.Response, error) {
	if req.IsFlexible() {
		*tagsOf(req) = kmsg.Tags{} // of its own: req may be a copy of a client's request
		tagsOf(req).Set(askedTag, nil)
	}
	buf := kmsg.NewRequestFormatter(kmsg.FormatterClientID("streamstest")).AppendRequest(nil, req, 1)
	if _, err := conn.Write(buf); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	const most = 100 << 20 // what a TLS server sends to a plain client is no size
	n := binary.BigEndian.Uint32(size[:])
	if n > most {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	r := kbin.Reader{Src: body}
	r.Int32() // correlation id
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		kmsg.SkipTags(&r)
	}
	if !r.Ok() {
		return nil, errors.New("an answer without a correlation id")
	}
	return resp, resp.ReadFrom(r.Src)
}

// tagsOf returns the tags of a request, or nil if no version of it can have any.
func tagsOf(req kmsg.Request) *kmsg.Tags {
	field := reflect.ValueOf(req).Elem().FieldByName("UnknownTags")
	if !field.IsValid() {
		return nil
	}
	return field.Addr().Interface().(*kmsg.Tags)
}
