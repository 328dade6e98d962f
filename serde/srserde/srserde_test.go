package srserde_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/serde/avroserde"
	"github.com/odradek-go/odradek/serde/protoserde"
	"github.com/odradek-go/odradek/serde/srserde"
)

type order struct {
	ID    string `avro:"id"`
	Cents int64  `avro:"cents"`
}

const orderSchema = `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}]}`

// registry starts a fake registry, and returns a client's view of it.
func registry(t *testing.T) (*srfake.Registry, *srserde.Registry) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	client, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	return fake, srserde.NewRegistry(client)
}

// requests counts the requests that a registry gets.
func requests(fake *srfake.Registry) *atomic.Int64 {
	var n atomic.Int64
	fake.Intercept(func(http.ResponseWriter, *http.Request) bool { n.Add(1); return false })
	return &n
}

func encode[T any](t *testing.T, s serde.Serde[T], v T) []byte {
	t.Helper()
	b, err := s.Append([]byte{}, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWireFormat: a zero, the id as four bytes, the value; behind what is in the buffer.
func TestWireFormat(t *testing.T) {
	fake, r := registry(t)
	fake.SeedSchema("orders-value", 1, 0x01020304, sr.Schema{Schema: orderSchema})
	s := srserde.New(r, srserde.ValueSubject("orders"), avroserde.Must[order](orderSchema))
	b, err := s.Append([]byte("before "), order{"o1", 3})
	if want := "before \x00\x01\x02\x03\x04\x04o1\x06"; err != nil || string(b) != want {
		t.Errorf("got %q, %v, not %q", b, err, want)
	}
	v, err := s.Decode([]byte("\x00\x01\x02\x03\x04\x04o2\x08"))
	if err != nil || v != (order{"o2", 4}) {
		t.Errorf("decoded %+v, %v", v, err)
	}
}

// TestRegisters: the schema is registered with the first value, once, however many
// goroutines write.
func TestRegisters(t *testing.T) {
	fake, r := registry(t)
	n := requests(fake)
	s := srserde.New(r, srserde.KeySubject("orders"), avroserde.Must[*order](orderSchema))
	if b, err := s.Append([]byte{}, nil); b != nil || err != nil || n.Load() > 0 {
		t.Errorf("a tombstone is %q, %v, and led to %d requests", b, err, n.Load())
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 20 {
				in := order{fmt.Sprint(i), int64(i)}
				b, err := s.Append([]byte{}, &in)
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := s.Decode(b); err != nil || *out != in {
					t.Errorf("%+v became %+v, %v", in, out, err)
				}
			}
		})
	}
	group.Wait()
	if got, ok := fake.GetSchema("orders-key", 1); !ok || got.Schema.Type != sr.TypeAvro {
		t.Errorf("registered is %+v", got)
	}
	if n.Load() > 5 { // to register, and each goroutine at most once to look up
		t.Errorf("%d requests", n.Load())
	}
}

// TestEvolution: each value is read with the schema that it was written with.
func TestEvolution(t *testing.T) {
	_, r := registry(t)
	type newer struct {
		ID       string `avro:"id"`
		Cents    int64  `avro:"cents"`
		Currency string `avro:"currency"`
	}
	const newerSchema = `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"},
		{"name": "cents", "type": "long"}, {"name": "currency", "type": "string", "default": "EUR"}]}`
	was := srserde.New(r, "orders-value", avroserde.Must[order](orderSchema))
	is := srserde.New(r, "orders-value", avroserde.Must[newer](newerSchema))
	b := encode(t, was, order{"o1", 3})
	if got, err := is.Decode(b); err != nil || got != (newer{"o1", 3, "EUR"}) {
		t.Errorf("the old one is read as %+v, %v", got, err)
	}
	if got, err := was.Decode(encode(t, is, newer{"o2", 4, "USD"})); err != nil || got != (order{"o2", 4}) {
		t.Errorf("the new one is read as %+v, %v", got, err)
	}
	other := srserde.New(r, "others", avroserde.Must[string](`"string"`))
	if _, err := other.Decode(b); err == nil || !strings.Contains(err.Error(), "can't be read as string") {
		t.Errorf("read as something else: %v", err)
	}
}

// TestReferences: schemas that refer to others are registered, and read by those who
// know neither.
func TestReferences(t *testing.T) {
	fake, r := registry(t)
	const idSchema = `{"type": "record", "name": "ID", "fields": [{"name": "n", "type": "long"}]}`
	if _, _, err := fake.RegisterSchema("id", sr.Schema{Schema: idSchema}); err != nil {
		t.Fatal(err)
	}
	const itemSchema = `{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "ID"}]}`
	idReference := sr.SchemaReference{Name: "ID", Subject: "id", Version: 1}
	if _, _, err := fake.RegisterSchema("item", sr.Schema{Schema: itemSchema, References: []sr.SchemaReference{idReference}}); err != nil {
		t.Fatal(err)
	}
	type id struct {
		N int64 `avro:"n"`
	}
	type item struct {
		ID id `avro:"id"`
	}
	type cart struct {
		Items []item `avro:"items"`
		Of    id     `avro:"of"`
	}
	const cartSchema = `{"type": "record", "name": "Cart", "fields": [
		{"name": "items", "type": {"type": "array", "items": "Item"}}, {"name": "of", "type": "ID"}]}`
	format := avroserde.Must[cart](cartSchema, avroserde.Config{References: []string{idSchema, itemSchema}})
	s := srserde.New(r, "carts-value", format, srserde.Options{References: []sr.SchemaReference{
		{Name: "Item", Subject: "item", Version: 1}, idReference,
	}})
	in := cart{Items: []item{{id{1}}}, Of: id{2}}
	b := encode(t, s, in)

	client, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	reader := srserde.New(srserde.NewRegistry(client), "carts-value", format)
	if out, err := reader.Decode(b); err != nil || fmt.Sprint(out) != fmt.Sprint(in) {
		t.Errorf("%+v became %+v, %v", in, out, err)
	}
}

// TestAutoRegisterDisabled: what is not registered is an error, as long as it isn't.
func TestAutoRegisterDisabled(t *testing.T) {
	fake, r := registry(t)
	s := srserde.New(r, "orders-value", avroserde.Must[order](orderSchema), srserde.Options{AutoRegisterDisabled: true})
	if b, err := s.Append([]byte{}, order{}); err == nil || !strings.Contains(err.Error(), `"orders-value", where it must be registered`) {
		t.Errorf("got %q, %v", b, err)
	}
	if _, _, err := fake.RegisterSchema("orders-value", sr.Schema{Schema: orderSchema}); err != nil {
		t.Fatal(err)
	}
	encode(t, s, order{})
}

func TestDecodeErrors(t *testing.T) {
	fake, r := registry(t)
	fake.SeedSchema("text", 1, 7, sr.Schema{Schema: `{"type": "string"}`, Type: sr.TypeJSON})
	s := srserde.New(r, "orders-value", avroserde.Must[order](orderSchema))
	for data, says := range map[string]string{
		"":                          "were they written with a schema registry?",
		"\x00\x00\x00\x00":          "were they written with a schema registry?",
		"\x01\x00\x00\x00\x01abc":   "were they written with a schema registry?",
		"\x00\x00\x00\x00\x63":      "id 99",
		"\x00\x00\x00\x00\x07\"x\"": "is of type JSON, not AVRO",
	} {
		if v, err := s.Decode([]byte(data)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %+v, %v, which does not say %s", data, v, err, says)
		}
	}
}

// TestRetries: a registry that is overloaded or down for a moment is asked again, one
// that refuses is not.
func TestRetries(t *testing.T) {
	fake, r := registry(t)
	var asked atomic.Int64
	status := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusOK, http.StatusForbidden}
	fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		code := status[min(int(asked.Add(1)), len(status))-1]
		if code != http.StatusOK {
			w.WriteHeader(code)
		}
		return code != http.StatusOK
	})
	encode(t, srserde.New(r, "orders-value", avroserde.Must[order](orderSchema)), order{})
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
	refused := srserde.New(r, "others", avroserde.Must[order](orderSchema))
	if _, err := refused.Append([]byte{}, order{}); err == nil || asked.Load() != 4 {
		t.Errorf("got %v after %d requests", err, asked.Load())
	}
}

func TestJSON(t *testing.T) {
	fake, r := registry(t)
	s := srserde.New(r, "orders-value", srserde.JSON[*order](`{"type": "object"}`))
	b := encode(t, s, &order{"o1", 3})
	if want := "\x00\x00\x00\x00\x01" + `{"ID":"o1","Cents":3}`; string(b) != want {
		t.Errorf("got %q, not %q", b, want)
	}
	if v, err := s.Decode(b); err != nil || *v != (order{"o1", 3}) {
		t.Errorf("decoded %+v, %v", v, err)
	}
	if got, ok := fake.GetSchema("orders-value", 1); !ok || got.Schema.Type != sr.TypeJSON {
		t.Errorf("registered is %+v", got)
	}
}

// unknownFormat is of a schema type that no registry has.
type unknownFormat struct{ srserde.Format[string] }

func (unknownFormat) SchemaType() string { return "XML" }

// TestMisuse: what can't work is an error when it is used.
func TestMisuse(t *testing.T) {
	_, r := registry(t)
	for says, s := range map[string]serde.Serde[string]{
		"2 options": srserde.New(r, "s", srserde.JSON[string]("{}"), srserde.Options{}, srserde.Options{}),
		"XML":       srserde.New[string](r, "s", unknownFormat{srserde.JSON[string]("{}")}),
	} {
		if _, err := s.Append([]byte{}, "x"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
		if _, err := s.Decode([]byte("\x00\x00\x00\x00\x01")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}

func TestProtobuf(t *testing.T) {
	fake, r := registry(t)
	s := srserde.New(r, "values-value", protoserde.NewFormat[structpb.Value]())
	b := encode(t, s, structpb.NewStringValue("abc"))
	if want := "\x00\x00\x00\x00\x01\x02\x02\x1a\x03abc"; string(b) != want {
		t.Errorf("got %q, not %q", b, want)
	}
	if v, err := s.Decode(b); err != nil || v.GetStringValue() != "abc" {
		t.Errorf("decoded %v, %v", v, err)
	}
	if got, ok := fake.GetSchema("values-value", 1); !ok || got.Schema.Type != sr.TypeProtobuf {
		t.Errorf("registered is %+v", got)
	}
}

// filed is a format of several files.
type filed struct{ srserde.Format[string] }

func (filed) Schema() string { return `{"title": "cart"}` }

func (filed) Files(yield func(name, schema string, imports []string) error) error {
	return errors.Join(
		yield("id", `{"title": "id"}`, nil),
		yield("item", `{"title": "item"}`, []string{"id"}),
		yield("cart", `{"title": "cart"}`, []string{"item", "id"}),
	)
}

// TestImports: what a schema imports is registered before it, and looked up where it is
// others who register.
func TestImports(t *testing.T) {
	fake, r := registry(t)
	waiting := srserde.New(r, "carts-value", filed{srserde.JSON[string]("")}, srserde.Options{AutoRegisterDisabled: true})
	if _, err := waiting.Append([]byte{}, "x"); err == nil || !strings.Contains(err.Error(), `subject "id"`) {
		t.Errorf("got %v", err)
	}
	encode(t, srserde.New(r, "carts-value", filed{srserde.JSON[string]("")}), "x")
	got, ok := fake.GetSchema("carts-value", 1)
	if !ok || fmt.Sprint(got.Schema.References) != "[{item item 1} {id id 1}]" {
		t.Errorf("registered is %+v", got)
	}
	if got, ok := fake.GetSchema("item", 1); !ok || fmt.Sprint(got.Schema.References) != "[{id id 1}]" {
		t.Errorf("registered is %+v", got)
	}
	encode(t, waiting, "x")
}
