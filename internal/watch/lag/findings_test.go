package lag

import (
	"math"
	"slices"
	"testing"
)

func TestFindingsSayWhatIsWrong(t *testing.T) {
	never := math.Inf(1)
	for name, c := range map[string]struct {
		g    GroupLag
		want []string
	}{
		"all is well":             {GroupLag{Members: 1, OvertakenIn: never}, nil},
		"a stuck partition":       {GroupLag{Members: 1, Stuck: 1, OvertakenIn: never}, []string{"stuck-partition"}},
		"nobody reads":            {GroupLag{Total: Total{Lag: 1}, Left: true, CatchUp: NotCatching, Seconds: 1e6, OvertakenIn: never}, []string{"lag-without-members"}},
		"nothing is left to read": {GroupLag{Total: Total{Lag: 1}, OvertakenIn: never}, nil},
		"somebody does":           {GroupLag{Total: Total{Lag: 1}, Left: true, ReadOutside: true, OvertakenIn: never}, nil},
		"nobody needs to":         {GroupLag{OvertakenIn: never}, nil},
		"soon records are lost":   {GroupLag{Members: 1, Seconds: 300, OvertakenIn: 24*3600 - 1}, []string{"retention-overtakes"}},
		"it keeps up, nearly":     {GroupLag{Members: 1, Seconds: 299, OvertakenIn: 24*3600 - 1}, nil},
		"records are lost now":    {GroupLag{Members: 1, Seconds: 1, OvertakenIn: 0}, []string{"retention-overtakes"}},
		"in some days":            {GroupLag{Members: 1, OvertakenIn: 24 * 3600}, nil},
		"behind and not nearer":   {GroupLag{Members: 1, CatchUp: NotCatching, Seconds: 300, OvertakenIn: never}, []string{"not-catching-up"}},
		"a transaction is open":   {GroupLag{Members: 1, CatchUp: NotCatching, Seconds: 300, Held: true, OvertakenIn: never}, nil},
		"it keeps up":             {GroupLag{Members: 1, CatchUp: NotCatching, Seconds: 299, OvertakenIn: never}, nil},
		"behind and getting near": {GroupLag{Members: 1, CatchUp: Catching, Seconds: 900, OvertakenIn: never}, nil},
		"it went back":            {GroupLag{Members: 1, Verdicts: [Rewound + 1]int{Rewound: 2}, OvertakenIn: never}, []string{"offsets-rewound"}},
		"a record":                {GroupLag{Members: 1, Poison: 1, Stuck: 1, OvertakenIn: never}, []string{"poison-suspect", "stuck-partition"}},
		"the deploy":              {GroupLag{Members: 1, Dying: true, OvertakenIn: never}, []string{"members-keep-dying"}},
		"worst first":             {GroupLag{Members: 1, Stuck: 1, CatchUp: NotCatching, Seconds: 900}, []string{"stuck-partition", "retention-overtakes", "not-catching-up"}},
	} {
		if got := c.g.Findings(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
