// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package sandboxcore

import (
	"maps"
	"reflect"
	"slices"
)

// The value objects of this package are comparable with == and hold no pointer,
// slice or map, so a copy can't be changed behind its owner's back. Opt, Tuple and
// Labels are what they use where Go's own types would break that.

// Opt is an optional value. The zero Opt holds none.
type Opt[T comparable] struct {
	value T
	set   bool
}

// Some returns an Opt that holds v.
func Some[T comparable](v T) Opt[T] { return Opt[T]{value: v, set: true} }

// None returns an Opt that holds nothing.
func None[T comparable]() Opt[T] { return Opt[T]{} }

// Get returns the value and whether there is one.
func (o Opt[T]) Get() (T, bool) { return o.value, o.set }

// IsSet says whether there is a value.
func (o Opt[T]) IsSet() bool { return o.set }

// Or returns the value, or fallback where there is none.
func (o Opt[T]) Or(fallback T) T {
	if o.set {
		return o.value
	}
	return fallback
}

// Tuple is an immutable sequence with value equality. The zero Tuple is empty.
type Tuple[T comparable] struct {
	// array holds a [n]T (or nil when empty): unlike a slice, an array in an
	// interface is compared by its elements.
	array any
}

// TupleOf returns the tuple of items, in their order.
func TupleOf[T comparable](items ...T) Tuple[T] {
	if len(items) == 0 {
		return Tuple[T]{}
	}
	array := reflect.New(reflect.ArrayOf(len(items), reflect.TypeFor[T]())).Elem()
	reflect.Copy(array, reflect.ValueOf(items))
	return Tuple[T]{array: array.Interface()}
}

// Len returns the number of elements.
func (t Tuple[T]) Len() int {
	if t.array == nil {
		return 0
	}
	return reflect.ValueOf(t.array).Len()
}

// Slice returns a fresh copy of the elements, never nil.
func (t Tuple[T]) Slice() []T {
	items := make([]T, t.Len())
	if t.array != nil {
		reflect.Copy(reflect.ValueOf(items), reflect.ValueOf(t.array))
	}
	return items
}

type label struct{ key, value string }

// Labels is an immutable string map with value equality.
type Labels struct{ pairs Tuple[label] }

// LabelsOf returns the labels of m.
func LabelsOf(m map[string]string) Labels {
	pairs := make([]label, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, label{k, m[k]})
	}
	return Labels{TupleOf(pairs...)}
}

// Get returns the value of key and whether it is there.
func (l Labels) Get(key string) (string, bool) {
	for _, p := range l.pairs.Slice() {
		if p.key == key {
			return p.value, true
		}
	}
	return "", false
}

// Len returns the number of labels.
func (l Labels) Len() int { return l.pairs.Len() }

// Map returns a fresh copy, never nil.
func (l Labels) Map() map[string]string {
	m := make(map[string]string, l.Len())
	for _, p := range l.pairs.Slice() {
		m[p.key] = p.value
	}
	return m
}
