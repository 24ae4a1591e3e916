package consumer

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// Patterns are matched against the names of all topics, which takes long where there
// are many: so that is a task, for all patterns of a group together. Until it is done
// a pattern matches nothing.
//
// A pattern matches topics that the member may know of whose request asked for the
// look, as in Kafka: else anybody with a group would learn of all topics by ".*". What
// was found counts for all members with that pattern, until someone asks again.

// scan is what is known of the last look at the topics.
type scan struct {
	id    uint64          // of the one under way, 0 if there is none
	last  time.Time       // when it was done, zero if never since the load
	image *metadata.Image // which it looked at
	large map[string]bool // patterns whose topics did not fit into a record
}

const (
	// scanPause is how long a group rests between two looks at the topics, unless there
	// is a new pattern. (Kafka lets that wait as well, if the group has another.)
	scanPause = 10 * time.Second
	// scanAgain is when a look is taken though nothing seems to have changed.
	scanAgain = 10 * time.Minute
)

// scanned is what patterns match.
type scanned struct {
	id      uint64
	group   string
	image   *metadata.Image
	asker   metadata.Asker
	matches map[string][]string // sorted
}

// Refresh has the group's patterns resolved, if it is time to.
func (g *Group) Refresh(x *kind.Step) {
	if len(g.Patterns) == 0 || g.scan.id != 0 || x.Image == nil {
		return
	}
	if !g.scan.last.IsZero() && !g.hasNewPattern() {
		since := x.Now.Sub(g.scan.last)
		if since <= scanPause || since < scanAgain && g.scan.image == x.Image {
			return
		}
	}
	s := &scanned{group: g.ID, image: x.Image, asker: x.Req.Asker, matches: map[string][]string{}}
	for _, p := range slices.Sorted(maps.Keys(g.Patterns)) {
		s.matches[p] = nil
	}
	s.id = x.RunTask(s, func() any { return s.match() })
	g.scan.id = s.id
}

// hasNewPattern says whether the topics were not looked at for some pattern yet, or its
// members were all gone since.
func (g *Group) hasNewPattern() bool {
	if len(g.Regexes) == len(g.Patterns) {
		return false
	}
	for _, p := range slices.Sorted(maps.Keys(g.Patterns)) {
		if g.Regexes[p] == nil && !g.scan.large[p] {
			return true
		}
	}
	return false
}

// match finds the topics. It reads nothing but the image, which never changes.
func (s *scanned) match() *scanned {
	topics := s.shown()
	for _, pattern := range slices.Sorted(maps.Keys(s.matches)) {
		re, err := regexp.Compile(anchored(pattern))
		if err != nil { // It was compiled when the member came with it.
			continue
		}
		found := []string{}
		for _, t := range topics {
			if re.MatchString(t) {
				found = append(found, t)
			}
		}
		s.matches[pattern] = found
	}
	return s
}

// shown returns the topics that patterns may match, by name. As in Kafka, internal ones
// are among them.
func (s *scanned) shown() []string {
	var names []string
	for _, t := range s.image.Topics() {
		if s.image.Shows(t.Name, s.asker) {
			names = append(names, t.Name)
		}
	}
	return names
}

// done takes what patterns match. What no one asks for any more is left out.
func (*scanned) Done(x *kind.Step, result any) {
	s := result.(*scanned)
	g, ok := x.Groups[s.group].(*Group)
	if !ok || g.scan.id != s.id {
		return
	}
	g.scan = scan{last: x.Now, image: s.image, large: map[string]bool{}}
	changed := false
	x.From = len(x.Records)
	for _, p := range slices.Sorted(maps.Keys(s.matches)) {
		if g.Patterns[p] == 0 {
			continue
		}
		if old := g.Regexes[p]; old != nil && slices.Equal(old.Topics, s.matches[p]) {
			continue
		}
		r := &schema.ConsumerRegexRecord{Group: g.ID, Regex: p, Value: &schema.ConsumerRegex{Topics: s.matches[p], Timestamp: x.Now.UnixMilli()}}
		if !x.Fits(r) { // It matches what it did before.
			g.scan.large[p] = true
			continue
		}
		changed = true
		g.addPatternTrigger(x, p, s.matches[p])
		x.Write(r)
	}
	g.Bump(x, modern.Change{Bumps: changed})
}
