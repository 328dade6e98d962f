package serde_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

type listCase struct {
	Inner string
	Value json.RawMessage
	B64   []byte // nil for null
}

var lists = map[string]func(t *testing.T, r listCase){
	"String":    javaList(serde.Pointer(serde.String)),
	"Short":     javaList(serde.Pointer(serde.Int16)),
	"Integer":   javaList(serde.Pointer(serde.Int32)),
	"Long":      javaList(serde.Pointer(serde.Int64)),
	"Float":     javaList(serde.Pointer(serde.Float32)),
	"Double":    javaList(serde.Pointer(serde.Float64)),
	"Boolean":   javaList(serde.Pointer(serde.Bool)),
	"ByteArray": javaList[hexBytes](hexSerde{serde.Bytes}),
	"UUID":      javaList(serde.Pointer(uuidSerde)),
	// A list within a list is null where it is nil.
	"List<Long>":   javaList(serde.List(serde.Int64)),
	"List<String>": javaList(serde.List(serde.Pointer(serde.String))),
}

// jsonID and hexBytes are the forms in which list.json has its elements.
type jsonID id

func (v *jsonID) UnmarshalText(text []byte) (err error) {
	*v, err = uuidSerde.Decode(text)
	return err
}

var uuidSerde = serde.UUID[jsonID]()

type hexBytes []byte

func (v *hexBytes) UnmarshalText(text []byte) (err error) {
	*v, err = hex.DecodeString(string(text))
	return err
}

type hexSerde struct{ of serde.Serde[[]byte] }

func (s hexSerde) Append(dst []byte, v hexBytes) ([]byte, error) { return s.of.Append(dst, v) }
func (s hexSerde) Decode(data []byte) (hexBytes, error)          { return s.of.Decode(data) }

func javaList[T any](inner serde.Serde[T]) func(*testing.T, listCase) {
	return func(t *testing.T, r listCase) {
		s := serde.List(inner)
		var v []T
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatal(err)
		}
		got, err := s.Append([]byte("x"), v)
		if r.B64 == nil {
			if got != nil || err != nil {
				t.Errorf("a list of %s that is nil is %x (%v), in Java null", r.Inner, got, err)
			}
			return
		}
		if err != nil || string(got) != "x"+string(r.B64) {
			t.Errorf("%s of %s is %x (%v), in Java %x", r.Value, r.Inner, got, err, r.B64)
		}
		back, err := s.Decode(r.B64)
		if err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("%s of %s is read as %v (%v)", r.Value, r.Inner, back, err)
		}
	}
}

func TestListEqualsJava(t *testing.T) {
	checked := make(map[string]int)
	for _, r := range recorded[listCase](t, "list.json", "list") {
		check, ok := lists[r.Inner]
		if !ok {
			t.Errorf("lists of %s are not checked", r.Inner)
			continue
		}
		check(t, r)
		checked[r.Inner]++
	}
	for inner := range lists {
		if checked[inner] == 0 {
			t.Errorf("nothing recorded for a list of %s", inner)
		}
	}
}

// TestListReadsAsJava reads what Java's serializer doesn't write, with the
// outcome of Java Kafka Streams 4.4.0.
func TestListReadsAsJava(t *testing.T) {
	ints := func(b []byte) (any, error) { return serde.List(serde.Pointer(serde.Int32)).Decode(b) }
	words := func(b []byte) (any, error) { return serde.List(serde.Pointer(serde.String)).Decode(b) }
	one, two, five, seven, a := int32(1), int32(2), int32(5), int32(7), "a"
	type int32s = []*int32
	for _, c := range []struct {
		what, data string
		read       func([]byte) (any, error)
		want       any // nil where it is refused
	}{
		{"bytes after the end", "00 00000000 00000001 00000001 ff", ints, int32s{&one}},
		{"bytes after the end", "01 00000001 00000001 61 ff", words, []*string{&a}},
		{"a fixed size with lengths", "01 00000001 00000004 00000007", ints, int32s{&seven}},
		{"a null with lengths", "01 00000001 ffffffff", ints, int32s{nil}},
		{"an index of null after the end", "00 00000001 00000005 00000001 00000001", ints, int32s{&one}},
		{"indexes of nulls out of order", "00 00000002 00000001 00000000 00000002", ints, int32s{nil, nil}},
		{"an index of null twice", "00 00000002 00000000 00000000 00000001", ints, int32s{nil}},
		{"a negative index of null", "00 00000001 ffffffff 00000001 00000005", ints, int32s{&five}},
		{"nulls among others", "00 00000001 00000000 00000002 00000002", ints, int32s{nil, &two}},
		{"no data", "", ints, nil},
		{"only a strategy", "00", ints, nil},
		{"only a strategy", "01", words, nil},
		{"no count", "00 00000000", ints, nil},
		{"an unknown strategy", "02 00000000 00000000", ints, nil},
		{"a negative number of nulls", "00 ffffffff 00000001 00000005", ints, nil},
		{"more nulls than data", "00 7fffffff 00000001 00000005", ints, nil},
		{"a negative count", "00 00000000 ffffffff", ints, nil},
		{"a negative count", "01 ffffffff", words, nil},
		{"more elements than data", "01 7fffffff 00000000", words, nil},
		{"more elements than data", "00 00000000 7fffffff 00000000", ints, nil},
		{"an end before the last element", "00 00000000 00000002 00000001", ints, nil},
		{"nulls that don't make up for it", "00 00000001 00000009 00000002 00000001", ints, nil},
		{"an end before the last length", "01 00000002 00000001 61", words, nil},
		{"an end within an element", "01 00000001 00000002 61", words, nil},
		{"an end after a length", "01 00000001 00000001", words, nil},
		{"a negative size", "01 00000001 fffffffe", words, nil},
		{"a size that isn't the type's", "01 00000001 00000003 000001", ints, nil},
		{"a fixed size for a type that has none", "00 00000000 00000001", words, nil},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.data, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.read(data)
		switch {
		case c.want == nil && err == nil:
			t.Errorf("%s (%s): read %v, which Java refuses", c.what, c.data, got)
		case c.want != nil && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%s (%s): %v, %v", c.what, c.data, got, err)
		}
	}
}

func TestListOfWhatCannotBeNull(t *testing.T) {
	null := []byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
	if v, err := serde.List(serde.Int32).Decode(null); err == nil || !strings.Contains(err.Error(), "element 0") {
		t.Errorf("a null is read as the int32s %v, %v", v, err)
	}
	null = []byte{1, 0, 0, 0, 1, 255, 255, 255, 255}
	if v, err := serde.List(serde.String).Decode(null); err == nil || !strings.Contains(err.Error(), "Pointer") {
		t.Errorf("a null is read as the strings %q, %v", v, err)
	}
	if v, err := serde.List(serde.Bytes).Decode(null); err != nil || len(v) != 1 || v[0] != nil {
		t.Errorf("a null is read as %v, %v", v, err)
	}
	// A struct can be null, too, where its serde says so.
	if v, err := serde.List(serde.Void).Decode(null); err != nil || len(v) != 1 {
		t.Errorf("a null is read as %v, %v", v, err)
	}
}

func TestListElementErrors(t *testing.T) {
	fail := errors.New("no")
	failing := serde.New(func(string) ([]byte, error) { return nil, fail }, func([]byte) (string, error) { return "", fail })
	if b, err := serde.List(failing).Append([]byte{}, []string{"a"}); b != nil || !errors.Is(err, fail) {
		t.Errorf("encoded %v, %v", b, err)
	}
	if v, err := serde.List(failing).Decode([]byte{1, 0, 0, 0, 1, 0, 0, 0, 0}); v != nil || !errors.Is(err, fail) {
		t.Errorf("decoded %v, %v", v, err)
	}
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		listRoundTrip(t, serde.Pointer(serde.Int64), rapid.Ptr(rapid.Int64(), true))
		listRoundTrip(t, serde.Pointer(serde.String), rapid.Ptr(rapid.String(), true))
		listRoundTrip(t, serde.Int16, rapid.Int16())
		listRoundTrip(t, serde.List(serde.Bool), rapid.SliceOf(rapid.Bool()))
	})
}

func listRoundTrip[T any](t *rapid.T, inner serde.Serde[T], element *rapid.Generator[T]) {
	s, v := serde.List(inner), rapid.SliceOf(element).Draw(t, "list")
	b, err := s.Append([]byte{}, v)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := s.Decode(b); err != nil || !reflect.DeepEqual(back, v) {
		t.Fatalf("%v became %v, %v", v, back, err)
	}
}
