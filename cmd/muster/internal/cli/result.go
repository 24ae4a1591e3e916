package cli

// Result is what --json shows of a topic that a command tried to change.
type Result struct {
	Name  string  `json:"name"`
	Error *string `json:"error"`
}

// NewResult makes the result of a topic.
func NewResult(name string, err error) Result {
	if err == nil {
		return Result{Name: name}
	}
	text := err.Error()
	return Result{name, &text}
}
