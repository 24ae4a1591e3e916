package assignor

import (
	"fmt"
	"testing"
)

// seeds says how many groups of each kind are made of a size.
var seeds = []struct {
	name  string
	size  size
	count uint64
}{{"tiny", tiny, 300}, {"small", small, 60}, {"large", large, 1}}

// everyGroup calls f for generated groups: with no previous target, with that of
// either assignor, and with one that makes little sense.
func everyGroup(t *testing.T, f func(t *testing.T, in *Input)) {
	for kind := range kinds {
		everyGroupOf(t, kind, f)
	}
}

func everyGroupOf(t *testing.T, kind int, f func(t *testing.T, in *Input)) {
	for _, s := range seeds {
		t.Run(fmt.Sprintf("%s/%d", s.name, kind), func(t *testing.T) {
			for seed := range s.count {
				in, r := generate(seed, s.size, kind)
				f(t, in)
				follow(in, Range(in))
				f(t, in)
				follow(in, Uniform(in))
				f(t, in)
				scramble(in, r)
				f(t, in)
				if t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

func TestRangeDoesWhatTheRuleSays(t *testing.T) {
	everyGroup(t, func(t *testing.T, in *Input) {
		if got, want := Range(in), rangeByReference(in); !sameResult(got, want) {
			t.Errorf("the target is\n%s, not\n%s", in.show(got), in.show(want))
		}
	})
}

func TestEachSubscribedPartitionGoesToOneSubscriber(t *testing.T) {
	everyGroup(t, func(t *testing.T, in *Input) {
		if err := isPartition(in, Range(in)); err != nil {
			t.Errorf("range: %v", err)
		}
		if err := isPartition(in, Uniform(in)); err != nil {
			t.Errorf("uniform: %v", err)
		}
	})
}

func TestAssignorsArePure(t *testing.T) {
	everyGroup(t, func(t *testing.T, in *Input) {
		if err := isPure(in, Range); err != nil {
			t.Errorf("range: %v", err)
		}
		if err := isPure(in, Uniform); err != nil {
			t.Errorf("uniform: %v", err)
		}
	})
}

// What stays is all that can, which is more than the named rules: balanced is
// unmoved, a leave moves what is left behind, a join what the joiner gets.
func TestUniformIsEvenAndMovesTheLeastIfTopicsAreTheSame(t *testing.T) {
	everyGroupOf(t, sameTopic, func(t *testing.T, in *Input) {
		result := Uniform(in)
		if err := isEven(result); err != nil {
			t.Error(err)
		}
		if got, possible := kept(in, result); got != possible {
			t.Errorf("%d stay, but %d could", got, possible)
		}
	})
}

func TestUniformFollowsLeavesAndJoins(t *testing.T) {
	for _, s := range seeds {
		for seed := range s.count {
			in, r := generate(seed, s.size, sameTopic)
			follow(in, Uniform(in))
			for range 10 {
				if r.IntN(2) == 0 && len(in.Members) > 1 {
					leave(in, r)
					had := 0
					for _, m := range in.Members {
						had += count(m.Previous)
					}
					result := Uniform(in)
					if got, _ := kept(in, result); got != had {
						t.Fatalf("%s, seed %d: after a leave %d of %d stay", s.name, seed, got, had)
					}
					follow(in, result)
					continue
				}
				joined := join(in, r)
				result := Uniform(in)
				all := 0
				for _, parts := range result {
					all += count(parts)
				}
				if got, _ := kept(in, result); got != all-count(result[joined]) {
					t.Fatalf("%s, seed %d: after a join %d of %d stay, and the joiner has %d", s.name, seed, got, all, count(result[joined]))
				}
				follow(in, result)
			}
		}
	}
}

// byBalancer is uniform in the way for members that differ, also if they do not.
func byBalancer(in *Input) (result [][]Partitions, rounds int) {
	o := newOwners(in)
	o.keep()
	rounds = newBalancer(o, newSubscriptions(in, inOrder(len(in.Members)))).run()
	return o.result(), rounds
}

// Where it stops by itself, no move is left that would help, and the next run
// moves nothing.
func TestUniformLeavesNoMoveThatWouldHelp(t *testing.T) {
	limited, all := 0, 0
	everyGroup(t, func(t *testing.T, in *Input) {
		result, rounds := byBalancer(in)
		all++
		if rounds == maxRounds {
			limited++
			return
		}
		if err := isBest(in, result); err != nil {
			t.Error(err)
		}
		next := clone(in)
		follow(next, result)
		if again := Uniform(next); !sameResult(again, result) {
			t.Error("what is balanced moves")
		}
	})
	if limited > all/20 {
		t.Errorf("%d of %d groups were given up", limited, all)
	}
}

// Groups whose members have the same topics could take either way. Kafka takes the
// other for some of them: as even, but it may move more.
func TestTheWayForTheSameTopicsIsTheBetterOne(t *testing.T) {
	everyGroupOf(t, sameTopic, func(t *testing.T, in *Input) {
		other, _ := byBalancer(in)
		if err := isEven(other); err != nil {
			t.Error(err)
		}
		got, _ := kept(in, Uniform(in))
		if others, _ := kept(in, other); got < others {
			t.Errorf("%d stay, and %d the other way", got, others)
		}
	})
}

func TestBalancerDoesWhatTheRuleSays(t *testing.T) {
	for kind := range kinds {
		for seed := range uint64(400) {
			in, r := generate(seed, tiny, kind)
			if seed%2 == 0 {
				in, r = generate(seed, small, kind)
			}
			if seed%4 < 2 {
				scramble(in, r)
			}
			want, wantRounds := byReference(in)
			got, rounds := byBalancer(in)
			if !sameResult(got, want) || rounds != wantRounds {
				t.Fatalf("kind %d, seed %d: after %d rounds\n%s, not after %d\n%s", kind, seed, rounds, in.show(got), wantRounds, in.show(want))
			}
		}
	}
}
