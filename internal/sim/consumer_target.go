package sim

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/assignor"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// task is work of a group that was begun and is not done.
type task struct {
	group string
	begun time.Duration
	wants map[string]map[part]bool // of the assignor: what each instance, or member, is to have; nil of others
	epoch int32
}

// tasksOf returns which group a task is of.
func (c *coordinator) tasksOf(id uint64) []string {
	if t := c.tasks[id]; t != nil {
		return []string{t.group}
	}
	return nil
}

// takeTasks notes what a step wants done. What the assignor must say follows from
// what is known now, whenever it is done.
func (c *coordinator) takeTasks(why cause, tasks []machine.Task) {
	for _, t := range tasks {
		if why.request == nil {
			c.w.Violated("work is wanted that no request asks for")
		}
		c.tasks[t.ID] = &task{group: why.request.ask.group, begun: c.w.Now}
	}
}

// runTask has work done, which may take long: it is handed over with the events.
func (c *coordinator) runTask(t machine.Task) {
	w := c.w
	d := w.About(20 * time.Millisecond)
	if w.Chance(w.faults().appendSlow * 4) {
		d = w.Between(0, 12*time.Second)
		w.Count("slow task")
	}
	result := t.Run()
	if _, ok := result.([]modern.Share[modern.Partition]); ok {
		v := c.view(c.tasks[t.ID].group)
		c.tasks[t.ID].wants, c.tasks[t.ID].epoch = v.roster.assign(w.topics.image, c.config.Consumer.Assignors), v.roster.epoch
	}
	w.After(d, func() {
		if !c.gone {
			c.host.TaskDone(c.life, t.ID, result)
			delete(c.tasks, t.ID)
		}
	})
}

// countPatterns counts patterns that were resolved, and those that came late.
func (b *beaten) countPatterns(e *entry) {
	for _, r := range e.originals {
		if r, ok := r.(*schema.ConsumerRegexRecord); ok && r.Value != nil {
			b.checkPattern(r)
		}
	}
	done, ok := b.why.event.(machine.TaskDone)
	if !ok || !slices.ContainsFunc(e.originals, func(r machine.Record) bool { return isPattern(r) }) {
		return
	}
	b.c.w.Count("pattern resolved")
	if b.c.w.Now-b.c.tasks[done.ID].begun > time.Second {
		b.c.w.Count("pattern resolved late")
	}
}

// checkPattern checks that a pattern matches whole names only.
func (b *beaten) checkPattern(r *schema.ConsumerRegexRecord) {
	whole := regexp.MustCompile("^(?:" + r.Regex + ")$")
	for _, name := range r.Value.Topics {
		if !whole.MatchString(name) {
			b.c.w.Violated("%s: %q is said to match %s", b.v.id, r.Regex, name)
		}
	}
}

// checkSparing checks that nothing is written of members whose target is what it was.
func (b *beaten) checkSparing(e *entry) {
	for _, r := range e.originals {
		r, ok := r.(*schema.ConsumerTargetRecord)
		if !ok || r.Group != b.v.id || r.Value == nil || b.up {
			continue
		}
		if was := b.before.members[r.Member]; was.stored && maps.Equal(was.target, partsOf(r.Value.Assigned)) {
			b.c.w.Violated("%s: the target of %s is what it was, and is written again", b.v.id, r.Member)
		}
	}
}

func isPattern(r machine.Record) bool {
	_, ok := r.(*schema.ConsumerRegexRecord)
	return ok
}

// assign is what each instance, or member, is to have by what the records say.
func (r *roster) assign(image *metadata.Image, assignors []string) map[string]map[part]bool {
	in := &assignor.Input{}
	index := map[string]int32{}
	for _, id := range r.ids() {
		m := r.members[id]
		for _, name := range r.names(&m) {
			index[name] = -1
		}
	}
	byID := map[metadata.TopicID]int32{}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		t := image.Topic(name)
		if t == nil {
			delete(index, name)
			continue
		}
		index[name], byID[t.ID] = int32(len(in.Topics)), int32(len(in.Topics))
		in.Topics = append(in.Topics, assignor.Topic{ID: t.ID, Name: name, Partitions: int32(len(t.Partitions))})
	}
	votes := map[string]int{}
	for _, id := range r.ids() {
		m := r.members[id]
		e := assignor.Member{ID: id}
		if m.says.Instance != nil {
			e.Instance = *m.says.Instance
		}
		if m.says.Assignor != nil {
			votes[*m.says.Assignor]++
		}
		for _, name := range r.names(&m) {
			if i, ok := index[name]; ok {
				e.Topics = append(e.Topics, i)
			}
		}
		e.Previous = previousOf(m.target, byID)
		in.Members = append(in.Members, e)
	}
	return assigned(in, winner(votes, assignors))
}

// winner is the assignor that most members ask for, the broker's first among equals.
func winner(votes map[string]int, assignors []string) string {
	best := assignors[0]
	for _, name := range assignors {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

func previousOf(target map[part]bool, byID map[metadata.TopicID]int32) []assignor.Partitions {
	lists := map[int32][]int32{}
	for _, p := range sortedParts(target) {
		if i, ok := byID[p.topic]; ok {
			lists[i] = append(lists[i], p.n)
		}
	}
	var out []assignor.Partitions
	for _, i := range slices.Sorted(maps.Keys(lists)) {
		out = append(out, assignor.Partitions{Topic: i, List: lists[i]})
	}
	return out
}

func assigned(in *assignor.Input, name string) map[string]map[part]bool {
	run := assignor.Uniform
	if name == "range" {
		run = assignor.Range
	}
	out := map[string]map[part]bool{}
	for i, list := range run(in) {
		set := map[part]bool{}
		for _, t := range list {
			for _, n := range t.List {
				set[part{in.Topics[t.Topic].ID, n}] = true
			}
		}
		out[identityOf(in.Members[i].ID, in.Members[i].Instance)] = set
	}
	return out
}

// identityOf is who a member is across restarts of static ones.
func identityOf(id, instance string) string {
	if instance != "" {
		return "instance " + instance
	}
	return id
}

func (m *rosterMember) identity(id string) string {
	if m.says.Instance != nil {
		return identityOf(id, *m.says.Instance)
	}
	return id
}

// checkTargets: a target is what the assignor says of what was known when it was
// begun (9).
func (b *beaten) checkTargets() {
	w, c := b.c.w, b.c
	if b.after.target == b.before.target || len(b.after.members) == 0 || !b.after.hasTarget {
		return
	}
	w.Count("target made")
	var wants map[string]map[part]bool
	epoch := b.after.epoch
	if e, ok := b.why.event.(machine.TaskDone); ok {
		t := c.tasks[e.ID]
		wants, epoch = t.wants, t.epoch
		w.Count("target made by a task")
		if epoch < b.after.epoch {
			w.Count("target is old when it is made")
		}
	} else {
		known := b.after.clone() // Sticky to the targets of before.
		for id, m := range known.members {
			from := id
			if old, ok := b.heir[id]; ok {
				from = old
			}
			m.target = b.before.members[from].target
			known.members[id] = m
		}
		wants = known.assign(w.topics.image, c.config.Consumer.Assignors)
	}
	if b.after.target != epoch {
		w.Violated("%s: the target is of epoch %d, it was made for %d (9)", b.v.id, b.after.target, epoch)
	}
	for _, id := range b.after.ids() {
		m := b.after.members[id]
		want, asked := wants[m.identity(id)]
		if asked && !maps.Equal(want, m.target) {
			w.Violated("%s: %s is to have %v, the assignor says %v (9)", b.v.id, id, sortedParts(m.target), sortedParts(want))
		}
	}
	if epoch == b.after.epoch {
		b.checkShares(wants)
	}
}

// checkShares checks that the targets are a partition of all that is subscribed to.
func (b *beaten) checkShares(wants map[string]map[part]bool) {
	shared := map[part]int{}
	for _, set := range wants {
		for p := range set {
			shared[p]++
		}
	}
	for name := range b.after.allNames() {
		t := b.c.w.topics.image.Topic(name)
		if t == nil {
			continue
		}
		for n := range t.Partitions {
			p := part{t.ID, int32(n)}
			if _, task := b.why.event.(machine.TaskDone); shared[p] != 1 && !task {
				b.c.w.Violated("%s: partition %d of %s is in %d targets (9)", b.v.id, n, name, shared[p])
			}
			delete(shared, p)
		}
	}
	if _, task := b.why.event.(machine.TaskDone); len(shared) > 0 && !task {
		b.c.w.Violated("%s: targets have what nobody subscribes to: %v (9)", b.v.id, sortedParts(shared))
	}
}

func (r *roster) allNames() map[string]bool {
	out := map[string]bool{}
	for _, id := range r.ids() {
		m := r.members[id]
		for _, name := range r.names(&m) {
			out[name] = true
		}
	}
	return out
}

// checkAnswer checks what a member is told, and that it was brought as far as it can
// be.
func (b *beaten) checkAnswer() {
	w, v := b.c.w, b.v
	if b.answer == nil || b.request.MemberEpoch < 0 || b.down != nil {
		return
	}
	now, was := b.after.members[b.actor], b.before.members[b.actor]
	if old, ok := b.heir[b.actor]; ok {
		was = b.before.members[old]
	}
	r := b.answer
	if r.MemberID == nil || *r.MemberID != b.actor || r.MemberEpoch != now.epoch() || int64(r.HeartbeatIntervalMillis) != b.c.config.Consumer.Heartbeat.Milliseconds() {
		w.Violated("%s: %s is told %+v", v.id, b.actor, r)
	}
	changed := !maps.EqualFunc(was.assigned, now.assigned, func(int32, int32) bool { return true })
	if r.Assignment == nil && !b.classic && (changed || isFull(b.request)) {
		w.Violated("%s: %s is not told what it has", v.id, b.actor)
	}
	if r.Assignment != nil && !slices.Equal(answeredParts(r.Assignment), sortedParts(now.assigned)) {
		w.Violated("%s: %s is told to have %v, has %v", v.id, b.actor, answeredParts(r.Assignment), sortedParts(now.assigned))
	}
	wanted := b.after.wanted(&now, w.topics.image)
	switch now.state() {
	case memberUnrevoked:
		if b.request.Topics != nil && was.state() == memberUnrevoked && maps.Equal(was.pending, now.pending) && !slices.ContainsFunc(sortedParts(now.pending), func(p part) bool { return owns(b.request, p) }) {
			w.Violated("%s: %s has let go of all that it had to, and is not brought on", v.id, b.actor)
		}
	case memberStable:
		if now.epoch() != b.after.target || !b.hasWanted(&now, wanted) {
			w.Violated("%s: %s is stable in epoch %d of %d with %v, should have %v (6)", v.id, b.actor, now.epoch(), b.after.target, sortedParts(now.assigned), wanted)
		}
	case memberUnreleased:
		b.checkWaits(&now, wanted)
	}
}

// isFull says whether a heartbeat says everything, so that it is told everything.
func isFull(m *kmsg.ConsumerGroupHeartbeatRequest) bool {
	return m.MemberEpoch == 0 || m.RebalanceTimeoutMillis != -1 && (m.SubscribedTopicNames != nil || m.SubscribedTopicRegex != nil) && m.Topics != nil
}

// wanted is what of its target a member subscribes to.
func (r *roster) wanted(m *rosterMember, image *metadata.Image) []part {
	names := r.names(m)
	return slices.DeleteFunc(sortedParts(m.target), func(p part) bool {
		t := image.TopicByID(p.topic)
		return t == nil || !slices.Contains(names, t.Name)
	})
}

// hasWanted says whether a member has what it is to have. While there is no target of
// the group's epoch yet, it may still have what is of topics that are gone, and not yet
// have what patterns have been found to match since.
func (b *beaten) hasWanted(m *rosterMember, wanted []part) bool {
	if b.after.epoch == b.after.target {
		return slices.Equal(wanted, sortedParts(m.assigned))
	}
	// Who unsubscribes must let go at once. If its coordinator is lost before, it need
	// not until there is a target, as with Kafka.
	// A heartbeat that overtakes another sees to it if that other one unsubscribed.
	was := b.before.members[b.actor]
	same := was.says != nil && slices.Equal(was.says.Topics, m.says.Topics) && sameText(was.says.Regex, m.says.Regex)
	if same && (!b.overtakes || !b.v.rewants[b.actor]) {
		return true
	}
	return !slices.ContainsFunc(sortedParts(m.assigned), func(p part) bool {
		return b.c.w.topics.image.TopicByID(p.topic) != nil && !slices.Contains(wanted, p)
	})
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// checkWaits checks that a member waits only for what others have, or may have: who was
// not heard of since the load may know of something that the log has lost.
func (b *beaten) checkWaits(now *rosterMember, wanted []part) {
	waits := false
	for _, p := range wanted {
		if _, has := now.assigned[p]; has {
			continue
		}
		waits = true
		if !slices.ContainsFunc(b.after.ids(), func(id string) bool {
			m := b.after.members[id]
			_, has := m.since(p)
			return has || !b.v.greeted[id] && m.epoch() != -2
		}) {
			b.c.w.Violated("%s: %s waits for %v, which nobody has", b.v.id, b.actor, p)
		}
	}
	if !waits {
		b.c.w.Violated("%s: %s waits for nothing", b.v.id, b.actor)
	}
}
