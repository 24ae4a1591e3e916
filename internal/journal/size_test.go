package journal

import (
	"reflect"
	"strings"
	"testing"
)

// lengthen makes all texts of a value long, and returns how long they are together.
func lengthen(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(strings.Repeat("x", 10_000))
			return 10_000
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return lengthen(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += lengthen(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += lengthen(v.Field(i))
		}
	}
	return n
}

// What waits to be written is bounded by it, and clients choose most of the texts.
func TestTheSizeOfAnEntryHasAllItsTexts(t *testing.T) {
	for i, e := range entries() {
		if texts := lengthen(reflect.ValueOf(&e)); e.Size() < texts || e.Size() > texts+16<<10 {
			t.Errorf("entry %d has %d bytes of texts, and is said to take %d", i, texts, e.Size())
		}
	}
	x := Txn{Key: "k", ID: "i", Kind: TxnFenced, Holder: &Holder{"c", "h"}, By: &Holder{"c", "h"}, Request: "r", Partitions: []string{"a", "b"}}
	if texts := lengthen(reflect.ValueOf(&x)); x.Size() < texts {
		t.Errorf("a transaction has %d bytes of texts, and is said to take %d", texts, x.Size())
	}
}
