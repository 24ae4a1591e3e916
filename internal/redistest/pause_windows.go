package redistest

// Pause is not possible on Windows.
func (n *Node) Pause() { panic("a process cannot be paused on Windows") }

// Resume is not possible on Windows.
func (n *Node) Resume() { panic("a process cannot be paused on Windows") }
