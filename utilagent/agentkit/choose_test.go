package agentkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/prosetest"
)

// TestChoose tests the choice of a session. The thread is t, the role r; its last step is s1, made in session
// X, and the head may have moved to h.
func TestChoose(t *testing.T) {
	t.Parallel()
	const task = "the instruction"
	ours := func(step string, since *try) record {
		return record{Agent: "uwf-a", Session: "X", Thread: "t", Role: "r", Try: since}.at(step)
	}
	theirs := func(step string, since *try) record {
		r := ours(step, since)
		r.Thread = "another"
		return r
	}
	cannot, copies, cuts := past{}, past{forks: true}, past{forks: true, cuts: true}
	now := func(how string) *try { // a try of this step
		return &try{Head: "h", Task: edgeSum(task), Begun: how != "", Rejected: map[string]string{"rejected": "wrong"}[how]}
	}
	otherwise := &try{Head: "h", Task: edgeSum("another one"), Begun: true}
	unheard := &try{Head: "h", Task: edgeSum("another one")}
	elsewhere := &try{Head: "replaced", Task: edgeSum(task), Begun: true}
	tests := map[string]struct {
		made, tried record
		can         past
		first       bool   // the role has no step
		agent       string // agent of its step; "" for ours

		since string
		mark  string
	}{
		"the first turn":                          {first: true},
		"comes back":                              {made: ours("s1", nil), since: "s1"},
		"nothing known":                           {can: cuts},
		"another agent's step":                    {made: ours("s1", nil), agent: "uwf-b"},
		"a fork":                                  {made: theirs("s1", nil), can: copies, since: "s1"},
		"a fork that cuts where it need not":      {made: theirs("s1", nil), can: cuts, since: "s1"},
		"a fork, and no copies":                   {made: theirs("s1", nil), can: cannot},
		"a fork in the middle":                    {made: theirs("s2", nil), can: copies},
		"a fork in the middle, cut":               {made: theirs("s2", nil), can: cuts, since: "s1", mark: "m1"},
		"a fork while the next step is made":      {made: theirs("s1", now("begun")), can: copies},
		"a fork after a rejected try":             {made: theirs("s1", now("rejected")), can: copies},
		"a fork after a try that said nothing":    {made: theirs("s1", now("")), can: copies},
		"a fork after a rejected try, cut":        {made: theirs("s1", now("rejected")), can: cuts, since: "s1", mark: "m1"},
		"another role's session":                  {made: record{Session: "X", Thread: "t", Role: "q", Step: "s1"}, can: copies, since: "s1"},
		"poked: the next step was in the session": {made: ours("s2", nil), can: copies},
		"poked, cut":                              {made: ours("s2", nil), can: cuts, since: "s1", mark: "m1"},
		"an interrupted try goes on":              {made: ours("s1", now("begun")), tried: ours("s1", now("begun")), since: "h"},
		"a rejected try goes on":                  {made: ours("s1", now("rejected")), tried: ours("s1", now("rejected")), since: "h"},
		"a try that was not heard is made again":  {made: ours("s1", now("")), tried: ours("s1", now("")), since: "s1"},
		"and with another instruction":            {made: ours("s1", unheard), tried: ours("s1", unheard), since: "s1"},
		"another instruction after one was heard": {made: ours("s1", otherwise), tried: ours("s1", otherwise), can: copies},
		"another instruction, cut":                {made: ours("s1", otherwise), tried: ours("s1", otherwise), can: cuts, since: "s1", mark: "m1"},
		"a try at a head that was replaced":       {made: ours("s1", elsewhere), tried: ours("s1", elsewhere), can: copies},
		"a try that failed twice":                 {made: ours("s1", now("begun")), can: copies},
		"a try in a session of its own":           {made: ours("s1", nil), tried: record{Session: "Y", Thread: "t", Role: "r", Try: now("begun")}, since: "h"},
		"a first try in a session of its own":     {first: true, tried: record{Session: "Y", Thread: "t", Role: "r", Try: now("begun")}, since: "h"},
		"another thread's try":                    {first: true, tried: record{Session: "Y", Thread: "another", Role: "r", Try: now("begun")}},
		"a try that came to its step":             {made: ours("s1", nil), tried: ours("s1", nil), since: "s1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tt.can
			p.agent, p.thread, p.role, p.head, p.task = "uwf-a", "t", "r", "h", edgeSum(task)
			p.made, p.tried = tt.made, tt.tried
			if !tt.first {
				p.last = &visit{step: "s1", agent: "uwf-a", session: "X"}
			}
			if tt.agent != "" {
				p.last.agent = tt.agent
			}
			got := choose(p)
			prosetest.Text(t, got.String())
			require.Equal(t, tt.since, string(got.since))
			require.Equal(t, tt.mark, got.mark)
			require.Equal(t, tt.since == "", got.id == "", "a session is named if it is gone on in")
			require.Equal(t, tt.since == "h", got.interrupted || got.rejected != "")
		})
	}
}

// at returns the record with a newest step; each step has left a mark.
func (r record) at(step string) record {
	for _, s := range []string{"1", "2"} {
		if r.Marks = append(r.Marks, mark{Step: cas.Hash("s" + s), At: "m" + s}); "s"+s == step {
			r.Step = cas.Hash(step)
			return r
		}
	}
	return r
}
