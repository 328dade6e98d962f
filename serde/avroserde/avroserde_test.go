package avroserde_test

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/serde/avroserde"
)

// order has a field of about every kind.
type order struct {
	ID     string            `avro:"id"`
	Cents  int64             `avro:"cents"`
	Weight *float64          `avro:"weight"`
	Lines  []line            `avro:"lines"`
	Tags   map[string]string `avro:"tags"`
	Raw    []byte            `avro:"raw"`
}

type line struct {
	SKU   string `avro:"sku"`
	Count int    `avro:"count"`
}

const orderSchema = `{
	"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "id", "type": "string"},
		{"name": "cents", "type": "long"},
		{"name": "weight", "type": ["null", "double"], "default": null},
		{"name": "lines", "type": {"type": "array", "items": {
			"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]
		}}},
		{"name": "tags", "type": {"type": "map", "values": "string"}},
		{"name": "raw", "type": "bytes"}
	]}`

func sample() order {
	return order{
		ID: "o1", Cents: -3, Weight: new(1.5), Lines: []line{{"tea", 2}, {"milk", 1}},
		Tags: map[string]string{"a": "b"}, Raw: []byte{0, 1},
	}
}

// TestBytes: the encoding is Avro's, byte by byte.
func TestBytes(t *testing.T) {
	s := avroserde.Must[line](`{"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]}`)
	b, err := s.Append([]byte("before "), line{"tea", -65})
	if want := "before \x06tea\x81\x01"; err != nil || string(b) != want {
		t.Errorf("got %q, %v, not %q", b, err, want)
	}
}

// TestOneBlock: an array is one block without a size, as Java writes it.
func TestOneBlock(t *testing.T) {
	s := avroserde.Must[[]int64](`{"type": "array", "items": "long"}`)
	b, err := s.Append([]byte{}, make([]int64, 200))
	if want := "\x90\x03" + strings.Repeat("\x00", 201); err != nil || string(b) != want {
		t.Errorf("got %q, %v", b, err)
	}
	if b, err := s.Append([]byte{}, []int64{}); err != nil || string(b) != "\x00" {
		t.Errorf("an empty array is %q, %v", b, err)
	}
	m := avroserde.Must[map[string]int64](`{"type": "map", "values": "long"}`)
	if b, err := m.Append([]byte{}, map[string]int64{"a": 1}); err != nil || string(b) != "\x02\x02a\x02\x00" {
		t.Errorf("a map is %q, %v", b, err)
	}
}

func TestRoundTrip(t *testing.T) {
	var s serde.Serde[order] = avroserde.Must[order](orderSchema)
	in := sample()
	b, err := s.Append([]byte{}, in)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(b)
	out, err := s.Decode(data)
	clear(data) // it belongs to us
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v became %+v, %v", in, out, err)
	}
}

func TestNull(t *testing.T) {
	pointers := avroserde.Must[*order](orderSchema)
	if b, err := pointers.Append([]byte{}, nil); b != nil || err != nil {
		t.Errorf("nil is %q, %v", b, err)
	}
	in := sample()
	b, err := pointers.Append([]byte{}, &in)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := pointers.Decode(b); err != nil || !reflect.DeepEqual(&in, out) {
		t.Errorf("%+v became %+v, %v", in, out, err)
	}
	empty := avroserde.Must[struct{}](`{"type": "record", "name": "Empty", "fields": []}`)
	if b, err := empty.Append([]byte{}, struct{}{}); b == nil || len(b) > 0 || err != nil {
		t.Errorf("a record without fields is %q, %v, not empty", b, err)
	}
	if _, err := empty.Decode([]byte{}); err != nil {
		t.Error(err)
	}
}

// TestOtherTypes: schemas need not be of records, nor Go types structs.
func TestOtherTypes(t *testing.T) {
	m := avroserde.Must[map[string]any](`{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}`)
	b, err := m.Append([]byte{}, map[string]any{"n": int64(7)})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := m.Decode(b); err != nil || out["n"] != int64(7) {
		t.Errorf("decoded %v, %v", out, err)
	}
	long := avroserde.Must[int64](`"long"`)
	if b, err := long.Append([]byte{}, -1); err != nil || string(b) != "\x01" {
		t.Errorf("-1 is %q, %v", b, err)
	}
	text := avroserde.Must[string](`"string"`)
	large := strings.Repeat("x", 3<<20)
	if b, err = text.Append([]byte{}, large); err != nil {
		t.Fatal(err)
	}
	if out, err := text.Decode(b); err != nil || out != large {
		t.Errorf("a large string became one of %d bytes, %v", len(out), err)
	}
}

// TestUnionOfRecords: types are told by their names.
func TestUnionOfRecords(t *testing.T) {
	type event struct {
		Body any `avro:"body"`
	}
	const schema = `{"type": "record", "name": "Event", "fields": [{"name": "body", "type": ["null", "shop.Order", "shop.Line"]}]}`
	s := avroserde.Must[event](schema, avroserde.Config{
		References: []string{orderSchema},
		Types:      map[string]any{"shop.Order": order{}, "shop.Line": line{}},
	})
	for _, in := range []event{{sample()}, {line{"tea", 1}}, {nil}} {
		b, err := s.Append([]byte{}, in)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := s.Decode(b); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%+v became %+v, %v", in, out, err)
		}
	}
}

// TestDecoder: what was written with an older or a newer schema is read as ours.
func TestDecoder(t *testing.T) {
	const was = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "gone", "type": "string"}, {"name": "id", "type": "string"}, {"name": "cents", "type": "int"}]}`
	const is = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}, {"name": "currency", "type": "string", "default": "EUR"}]}`
	type older struct {
		Gone  string `avro:"gone"`
		ID    string `avro:"id"`
		Cents int    `avro:"cents"`
	}
	type ours struct {
		ID       string `avro:"id"`
		Cents    int64  `avro:"cents"`
		Currency string `avro:"currency"`
	}
	b, err := avroserde.Must[older](was).Append([]byte{}, older{"x", "o1", 7})
	if err != nil {
		t.Fatal(err)
	}
	s := avroserde.Must[ours](is)
	decode, err := s.Decoder(was, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode(b); err != nil || got != (ours{"o1", 7, "EUR"}) {
		t.Errorf("decoded %+v, %v", got, err)
	}

	if _, err := s.Decoder(`{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}`, nil); err == nil || !strings.Contains(err.Error(), "shop.Order can't be read") {
		t.Errorf("schemas that don't go together: %v", err)
	}
	if _, err := s.Decoder(`{"type": "rec`, nil); err == nil {
		t.Error("a malformed schema is taken")
	}
}

func TestErrors(t *testing.T) {
	for schema, references := range map[string][]string{
		`{"type": "unknown"}`: nil,
		`"shop.Order"`:        nil, // without the reference
		`"long"`:              {"{"},
	} {
		if _, err := avroserde.New[order](schema, avroserde.Config{References: references}); err == nil || !strings.Contains(err.Error(), "avroserde_test.order") {
			t.Errorf("the schema %s: %v", schema, err)
		}
	}
	s := avroserde.Must[order](orderSchema)
	good, err := s.Append([]byte{}, sample())
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if _, err := s.Decode(good[:i]); err == nil || !strings.Contains(err.Error(), "shop.Order") {
			t.Errorf("%d of %d bytes are decoded: %v", i, len(good), err)
		}
	}
	if _, err := s.Decode(append(good, 0)); err == nil || !strings.Contains(err.Error(), "more after the value") {
		t.Errorf("with one byte too many: %v", err)
	}
	wrong := avroserde.Must[line](`{"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "long"}]}`)
	if b, err := wrong.Append([]byte{}, line{}); err == nil {
		t.Errorf("a type that does not fit is %q", b)
	}
	defer func() {
		if recover() == nil {
			t.Error("Must did not panic")
		}
	}()
	avroserde.Must[order]("{")
}

// TestMalformedLengths: what claims to be long costs no more than it could be.
func TestMalformedLengths(t *testing.T) {
	bytesOf := avroserde.Must[[]byte](`"bytes"`)
	array := avroserde.Must[[]int64](`{"type": "array", "items": "long"}`)
	huge := []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	least := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, data := range [][]byte{huge, least} {
		if _, err := bytesOf.Decode(data); err == nil {
			t.Errorf("bytes % x are decoded", data)
		}
		if _, err := array.Decode(data); err == nil {
			t.Errorf("an array % x is decoded", data)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	s := avroserde.Must[order](orderSchema)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				b, err := s.Append([]byte{}, sample())
				if err != nil {
					t.Error(err)
				}
				if out, err := s.Decode(b); err != nil || !reflect.DeepEqual(out, sample()) {
					t.Errorf("%+v, %v", out, err)
				}
			}
		})
	}
	group.Wait()
}

func FuzzDecode(f *testing.F) {
	s := avroserde.Must[order](orderSchema)
	good, err := s.Append([]byte{}, sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := s.Decode(data)
		if err != nil {
			return
		}
		b, err := s.Append([]byte{}, v)
		if err != nil {
			t.Fatalf("what was decoded is not encoded: %v", err)
		}
		if back, err := s.Decode(b); err != nil || !same(v, back) {
			t.Fatalf("%+v became %+v, %v", v, back, err)
		}
	})
}

// same compares orders, of which a weight that is no number is not itself.
func same(a, b order) bool {
	if a.Weight != nil && b.Weight != nil && *a.Weight != *a.Weight && *b.Weight != *b.Weight {
		a.Weight, b.Weight = nil, nil
	}
	return reflect.DeepEqual(a, b)
}
