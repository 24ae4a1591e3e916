package redis

// merge compares the ids of the data with those that some entries of the index have.
type merge struct {
	check *indexCheck
	spans []span
	// strange is entries of the data that follow each other and are not in the index.
	strange      int64
	first, until entryID
}

// span is ids that the index says follow each other.
type span struct {
	idRun
	offset int64
	below  bool // the start of the log, where nothing is left to look for
}

func newMerge(c *indexCheck, entries []indexEntry) *merge {
	m := &merge{check: c}
	for i := range entries {
		e := &entries[i]
		w, n := walker{}, int64(0)
		for _, r := range e.runs {
			for r.count > 0 { // A run goes on over batches, between which markers may have offsets.
				at, ok := w.place(e, n)
				if !ok {
					break
				}
				part := idRun{r.first, min(r.count, at.batch.next()-at.offset)}
				if at.offset < c.Start {
					part.count = min(part.count, c.Start-at.offset)
				}
				m.spans = append(m.spans, span{part, at.offset, at.offset < c.Start})
				r = idRun{entryID{r.first.ms, r.first.seq + uint64(part.count)}, r.count - part.count}
				n += part.count
			}
		}
	}
	return m
}

// take takes the next id of the data.
func (m *merge) take(id entryID) {
	for len(m.spans) > 0 && m.spans[0].last().less(id) {
		m.miss(m.spans[0].count)
	}
	if len(m.spans) > 0 && !id.less(m.spans[0].first) {
		m.miss(int64(id.seq - m.spans[0].first.seq))
		m.skip(1)
		m.check.Records++
		m.tell()
		return
	}
	if m.strange == 0 {
		m.first = id
	}
	m.strange, m.until = m.strange+1, id
}

// miss notes that the first ids of a span are not there.
func (m *merge) miss(n int64) {
	if n > 0 && !m.spans[0].below {
		m.check.missing = append(m.check.missing, missing{idRun{m.spans[0].first, n}, m.spans[0].offset})
	}
	m.skip(n)
}

// skip goes past the first ids of a span.
func (m *merge) skip(n int64) {
	s := &m.spans[0]
	s.first.seq, s.offset, s.count = s.first.seq+uint64(n), s.offset+n, s.count-n
	if s.count == 0 {
		m.spans = m.spans[1:]
	}
}

// tell tells of entries that are not in the index.
func (m *merge) tell() {
	if m.strange > 0 {
		m.check.found(m.first, "entries of %s are not in the index, and Kafka clients do not see them: %d, from %s to %s", m.check.keys.stream, m.strange, m.first, m.until)
	}
	m.strange = 0
}

// end is called when there is no more data.
func (m *merge) end() {
	for len(m.spans) > 0 {
		m.miss(m.spans[0].count)
	}
	m.tell()
}
