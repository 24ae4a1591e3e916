package search

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
)

// rank is the order of types in jq.
func rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case string:
		return 4
	case []any:
		return 5
	case map[string]any:
		return 6
	}
	return 3
}

// compare puts two values into jq's order, if it can with so many looks.
func compare(a, b any, looks *int, depth int) (int, error) {
	if *looks--; *looks < 0 || depth > maxDepth {
		return 0, errLarge
	}
	if x, y := rank(a), rank(b); x != y || x < 3 {
		return x - y, nil
	}
	switch a := a.(type) {
	case string:
		*looks -= min(len(a), len(b.(string))) / 64
		return strings.Compare(a, b.(string)), nil
	case []any:
		return compareLists(a, b.([]any), looks, depth)
	case map[string]any:
		return compareObjects(a, b.(map[string]any), looks, depth)
	case int:
		if b, ok := b.(int); ok {
			return cmp.Compare(a, b), nil
		}
	}
	x, okX := number(a)
	y, okY := number(b)
	switch {
	case !okX || !okY:
		return 0, errLarge
	case x < y || math.IsNaN(x):
		return -1, nil
	case x > y:
		return 1, nil
	}
	return 0, nil
}

func compareLists(a, b []any, looks *int, depth int) (int, error) {
	for i := range min(len(a), len(b)) {
		if order, err := compare(a[i], b[i], looks, depth+1); order != 0 || err != nil {
			return order, err
		}
	}
	return len(a) - len(b), nil
}

func compareObjects(a, b map[string]any, looks *int, depth int) (int, error) {
	if *looks -= len(a) + len(b); *looks < 0 {
		return 0, errLarge
	}
	names := slices.Sorted(maps.Keys(a))
	if order := slices.Compare(names, slices.Sorted(maps.Keys(b))); order != 0 {
		return order, nil
	}
	for _, name := range names {
		if order, err := compare(a[name], b[name], looks, depth+1); order != 0 || err != nil {
			return order, err
		}
	}
	return 0, nil
}

// extreme finds the largest, or with a sign of -1 the smallest.
func extreme(v any, sign int) any {
	list, ok := v.([]any)
	if !ok {
		return errors.New("min and max are of a list")
	}
	var best any
	looks := maxLooks
	for i, in := range list {
		order, err := compare(in, best, &looks, 0)
		if err != nil {
			return err
		}
		if i == 0 || order*sign > 0 {
			best = in
		}
	}
	return best
}

// contains says whether b is in a, as jq means it.
func contains(a, b any) any {
	looks := maxLooks
	in, err := isIn(a, b, &looks, 0)
	if err != nil {
		return err
	}
	return in
}

func isIn(a, b any, looks *int, depth int) (bool, error) {
	if *looks--; *looks < 0 || depth > maxDepth {
		return false, errLarge
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			*looks -= len(a) / 64
			return strings.Contains(a, b), nil
		}
	case []any:
		if b, ok := b.([]any); ok {
			return allIn(a, b, looks, depth)
		}
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			break
		}
		for name, wanted := range b {
			has, there := a[name]
			if !there {
				return false, nil
			}
			if in, err := isIn(has, wanted, looks, depth+1); !in || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	order, err := compare(a, b, looks, depth+1)
	return order == 0, err
}

func allIn(a, b []any, looks *int, depth int) (bool, error) {
	for _, wanted := range b {
		found := false
		for _, has := range a {
			in, err := isIn(has, wanted, looks, depth+1)
			if err != nil {
				return false, err
			}
			if found = in; found {
				break
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}
