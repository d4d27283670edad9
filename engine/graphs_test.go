package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/protocol"
)

// graph is a random workflow. Its roles answer by their prompt alone (see answerOf), so the result of a run
// can be predicted without the engine (see expected).
type graph struct {
	name  string
	parts []*part
}

// part is a role with a node. It has edges to the next part, and back.
type part struct {
	name   string
	kind   protocol.Player
	back   int // the part after a rejection; -1: it rejects nothing
	inner  *graph
	kids   map[string]child
	each   child
	items  []any // of each visit; nil: from the answer before it
	join   string
	until  int  // number of steps after which the join accepts
	bare   bool // neither join nor schema; only for the last part
	silent bool // no child answers with text
}

// child is a child of a part: a role without a node, or a workflow.
type child struct {
	role  string
	kind  protocol.Player
	inner *graph
}

// What a join accepts.
const (
	acceptAll  = "all"
	acceptDone = "done" // no child failed
	acceptOK   = "ok"   // no child rejected
)

// maker generates graphs.
type maker struct {
	*rand.Rand
	graphs []*graph
}

// graph returns a graph that is nested up to the given depth.
func (m *maker) graph(deep int, says bool) *graph {
	g := &graph{name: fmt.Sprintf("g%d", len(m.graphs))}
	m.graphs = append(m.graphs, g)
	for i, n := 0, 1+m.IntN(3); i < n; i++ {
		p := &part{name: fmt.Sprintf("r%d", i), back: -1, until: 1 + m.IntN(5)}
		kinds := []protocol.Player{protocol.PlayedByAgent, protocol.PlayedByPerson, protocol.PlayedByAll, protocol.PlayedByEach}
		if i > 0 {
			kinds = append(kinds, protocol.PlayedByCommand)
		}
		if deep > 0 {
			kinds = append(kinds, protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach)
		}
		p.kind = kinds[m.IntN(len(kinds))]
		switch p.kind {
		case protocol.PlayedByWorkflow:
			p.inner = m.graph(deep-1, true)
		case protocol.PlayedByAll:
			p.kids = map[string]child{}
			for range 1 + m.IntN(3) {
				key := fmt.Sprintf("k%d", m.IntN(5))
				p.kids[key] = m.child(p.name+key, deep)
			}
		case protocol.PlayedByEach:
			if p.each = m.child(p.name+"each", deep); i == 0 || m.IntN(2) == 0 {
				p.items = []any{}
				for range m.IntN(4) {
					p.items = append(p.items, item(m.Uint64()))
				}
			}
		default:
			if m.IntN(3) == 0 {
				p.back = m.IntN(i + 1)
			}
		}
		if p.fans() {
			all := append(slices.Collect(maps.Values(p.kids)), p.each)
			p.silent = !slices.ContainsFunc(all, child.says)
			p.join = []string{acceptAll, acceptDone, acceptOK}[m.IntN(3)]
			if p.bare = i == n-1 && !says && m.IntN(4) == 0; !p.bare && p.join != acceptAll {
				p.back = m.IntN(i + 1)
			}
		}
		if p.back >= 0 {
			p.name += rejecting
		}
		g.parts = append(g.parts, p)
	}
	return g
}

// child returns a child. Half of them are workflows, as long as the depth allows.
func (m *maker) child(role string, deep int) child {
	if deep > 0 && m.IntN(2) == 0 {
		return child{inner: m.graph(deep-1, false), kind: protocol.PlayedByWorkflow}
	}
	kinds := []protocol.Player{protocol.PlayedByAgent, protocol.PlayedByAgent, protocol.PlayedByCommand, protocol.PlayedByPerson}
	return child{role: role + rejecting, kind: kinds[m.IntN(len(kinds))]}
}

func (p *part) fans() bool { return p.kind == protocol.PlayedByAll || p.kind == protocol.PlayedByEach }

// says reports whether a child's last answer has text.
func (k child) says() bool {
	return k.role != "" || k.inner != nil && !k.inner.parts[len(k.inner.parts)-1].bare
}

// item maps numbers to few values, so that some are equal.
func item(number uint64) any {
	return []any{int64(1), int64(2), "a", "b <&>"}[number%4]
}

// rejecting is the suffix of roles that may answer "no".
const rejecting = "-no"

// answer is the answer of a role.
type answer struct {
	Status string   `json:"$status"`
	Say    string   `json:"say"`
	Items  []any    `json:"items"`
	Got    []string `json:"got,omitzero"`
}

// answerOf returns the answer of a role to a prompt. If dies is true, an agent never succeeds with this
// prompt; that occurs only below a role with a join, which counts the child as failed once it is killed.
func answerOf(role, prompt string) (a answer, dies bool) {
	h := fnv.New64a()
	fmt.Fprint(h, role, "\n", prompt)
	n := h.Sum64()
	a = answer{Status: "ok", Say: fmt.Sprintf("%06x", n>>40), Items: []any{}}
	if strings.HasSuffix(role, rejecting) && n%4 == 0 {
		a.Status = "no"
	}
	for i := range n >> 8 % 4 {
		a.Items = append(a.Items, item(n>>(10+2*i)))
	}
	_, last, child := cutLast(prompt, "!")
	return a, child && !strings.Contains(last, ":") && n%7 == 1
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	return s[:max(i, 0)], s[i+1:], i >= 0
}

// write writes the files of a graph.
func (m *maker) write(t *testing.T, dir string) {
	for _, g := range m.graphs {
		text, err := json.MarshalIndent(g.text(), "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, g.name+".yaml"), text, 0o600))
	}
}

type object = map[string]any

func (g *graph) text() object {
	roles, nodes := object{}, object{}
	nodes[protocol.StartNode] = object{"_": g.edge(0, true)}
	for i, p := range g.parts {
		roles[p.name] = p.text(roles, i == 0)
		node := object{"ok": g.edge(i+1, false)}
		if p.bare {
			node = object{"done": protocol.EndNode, "failed": protocol.EndNode}
		}
		if p.back >= 0 {
			node["no"] = g.edge(p.back, false)
		}
		nodes[p.name] = node
	}
	return object{"name": g.name, "description": "Made by chance.", "limits": object{"maxSteps": 1000}, "roles": roles, "graph": nodes}
}

func (g *graph) edge(to int, first bool) any {
	if to == len(g.parts) {
		return protocol.EndNode
	}
	p := g.parts[to]
	switch {
	case !first:
		return object{"role": p.name, "prompt": "{{{say}}}:" + p.name}
	case p.kind == protocol.PlayedByWorkflow:
		return object{"role": p.name, "prompt": "{{{$prompt}}}:" + p.name}
	}
	return object{"role": p.name, "prompt": "{{{$prompt}}}"}
}

func (p *part) text(roles object, first bool) object {
	r := object{"description": "D.", "frontmatter": schema(p.name)}
	from := "{{{say}}}"
	if first {
		from = "{{{$prompt}}}"
	}
	child := func(k child, last string) object {
		if k.inner != nil {
			return object{"workflow": "./" + k.inner.name + ".yaml", "prompt": from + "!" + last}
		}
		roles[k.role] = player(object{"description": "D.", "frontmatter": schema(k.role)}, k.kind, k.role, "{{{$prompt}}}")
		return object{"role": k.role, "prompt": from + "!" + last}
	}
	switch p.kind {
	case protocol.PlayedByWorkflow:
		r["workflow"] = "./" + p.inner.name + ".yaml"
	case protocol.PlayedByAll:
		all := object{}
		for key, k := range p.kids {
			all[key] = child(k, key)
		}
		r["all"] = all
	case protocol.PlayedByEach:
		each := child(p.each, "{{{item}}}")
		if each["of"] = "meta.items"; p.items != nil {
			text, _ := json.Marshal(p.items)
			each["of"] = string(text)
		}
		r["each"] = each
	default:
		return player(r, p.kind, p.name, from+":"+p.name)
	}
	switch {
	case p.bare:
		delete(r, "frontmatter")
	case p.fans():
		r["join"] = p.joinText()
	}
	return r
}

func player(r object, kind protocol.Player, name, input string) object {
	switch kind {
	case protocol.PlayedByPerson:
		r["person"] = true
	case protocol.PlayedByCommand:
		r["run"], r["parse"] = []string{"played", name, input}, "json"
	default:
		r["goal"] = "G."
	}
	return r
}

func schema(role string) object {
	statuses := []string{"ok"}
	if strings.HasSuffix(role, rejecting) {
		statuses = append(statuses, "no")
	}
	return object{
		"type": "object", "required": []string{"$status", "say", "items"},
		"properties": object{
			"$status": object{"enum": statuses}, "say": object{"type": "string"}, "items": object{"type": "array"},
			"got": object{"type": "array", "items": object{"type": "string"}},
		},
	}
}

func (p *part) joinText() string {
	status, said, first := "'ok'", "'-'", "'-'"
	if !p.silent {
		said, first = "output.say", "results[0].output.say"
	}
	switch p.join {
	case acceptDone:
		status = fmt.Sprintf("$count(results[status = 'failed']) > 0 and depth < %d ? 'no' : 'ok'", p.until)
	case acceptOK:
		status = fmt.Sprintf("$count(results[output.`$status` = 'no']) > 0 and depth < %d ? 'no' : 'ok'", p.until)
	}
	return fmt.Sprintf("{ '$status': %s, 'say': $string(depth) & '.' & $string($count(results)) & '.' & %s, 'items': [depth, 'a'], 'got': [results.(key & '=' & status & '/' & %s)] }",
		status, first, said)
}

// thread is the expected or actual end state of a thread.
type thread struct {
	Key    string `json:",omitempty"` // of a child
	Status protocol.Status
	Steps  []made
}

type made struct {
	Role     string
	Output   any
	Children []thread `json:",omitempty"`
}

// model predicts the results of runs.
type model struct {
	t     *testing.T
	steps int // of all threads
}

// expected returns the end state of a graph.
func (m *model) expected(g *graph, prompt string) thread {
	run := thread{Status: protocol.StatusCompleted}
	said := ""
	for at := 0; at < len(g.parts) && m.steps < tooMany; m.steps++ {
		p := g.parts[at]
		input := prompt
		if len(run.Steps) > 0 || p.kind == protocol.PlayedByWorkflow {
			input = said + ":" + p.name
		}
		if len(run.Steps) == 0 && p.kind == protocol.PlayedByWorkflow {
			input = prompt + ":" + p.name
		}
		step := made{Role: p.name}
		var a answer
		switch {
		case p.kind == protocol.PlayedByWorkflow:
			inner := m.expected(p.inner, input)
			inner.Key = p.name
			step.Children = []thread{inner}
			if len(inner.Steps) == 0 { // too many steps
				return run
			}
			a, _ = inner.Steps[len(inner.Steps)-1].Output.(answer)
			step.Output = a
		case p.fans():
			from := said
			if at == 0 {
				from = prompt
			}
			var items []any
			if len(run.Steps) > 0 {
				last, _ := run.Steps[len(run.Steps)-1].Output.(answer)
				items = last.Items
			}
			var values map[string]any
			step.Children, values = m.kids(p, from, items)
			if step.Output = p.joined(step.Children, values, len(run.Steps)); !p.bare {
				a = step.Output.(answer)
			}
		default:
			if p.kind == protocol.PlayedByCommand { // commands are identified by the prompt
				input = said + ":" + p.name
			}
			var dies bool
			if a, dies = answerOf(p.name, input); dies && p.kind == protocol.PlayedByAgent {
				run.Status = protocol.StatusCancelled
				return run
			}
			step.Output = a
		}
		run.Steps = append(run.Steps, step)
		said = a.Say
		if at++; a.Status == "no" {
			at = p.back
		}
	}
	return run
}

// tooMany is the number of steps above which a graph isn't used.
const tooMany = 400

// kids returns the children of a part in order, and the items by key.
func (m *model) kids(p *part, from string, items []any) (kids []thread, values map[string]any) {
	if p.kind == protocol.PlayedByAll {
		for _, key := range slices.Sorted(maps.Keys(p.kids)) {
			kids = append(kids, m.child(p.kids[key], key, from+"!"+key))
		}
		return kids, nil
	}
	if p.items != nil {
		items = p.items
	}
	seen := map[string]int{}
	values = map[string]any{}
	for _, item := range items {
		key, err := children.KeyOf(item)
		require.NoError(m.t, err)
		if seen[key]++; seen[key] > 1 {
			key = fmt.Sprint(key, "-", seen[key])
		}
		values[key] = item
		kids = append(kids, m.child(p.each, key, fmt.Sprint(from, "!", item)))
	}
	return kids, values
}

func (m *model) child(k child, key, prompt string) thread {
	if k.inner != nil {
		run := m.expected(k.inner, prompt)
		run.Key = key
		return run
	}
	m.steps++
	a, dies := answerOf(k.role, prompt)
	if dies && k.kind == protocol.PlayedByAgent {
		return thread{Key: key, Status: protocol.StatusCancelled}
	}
	return thread{Key: key, Status: protocol.StatusCompleted, Steps: []made{{Role: k.role, Output: a}}}
}

// joined returns the joined output of children.
func (p *part) joined(kids []thread, values map[string]any, depth int) any {
	failed, rejected, first := 0, 0, ""
	got, results := []string{}, []any{}
	for i, k := range kids {
		status, say := "done", ""
		result := object{"key": k.Key}
		if item, ok := values[k.Key]; ok {
			result["item"] = item
		}
		if len(k.Steps) > 0 {
			output := k.Steps[len(k.Steps)-1].Output
			result["output"] = output
			a, _ := output.(answer)
			if say = a.Say; a.Status == "no" {
				rejected++
			}
		}
		if k.Status != protocol.StatusCompleted {
			failed++
			status, result["error"] = "failed", "it was cancelled"
		}
		if p.silent {
			say = "-"
		}
		if i == 0 {
			first = say
		}
		result["status"] = status
		got, results = append(got, k.Key+"="+status+"/"+say), append(results, result)
	}
	if p.bare {
		status := "done"
		if failed > 0 {
			status = "failed"
		}
		return object{"$status": status, "results": results}
	}
	if p.silent {
		first = "-"
	}
	a := answer{Status: "ok", Say: fmt.Sprintf("%d.%d.%s", depth, len(kids), first), Items: []any{int64(depth), "a"}, Got: got}
	if depth < p.until && (p.join == acceptDone && failed > 0 || p.join == acceptOK && rejected > 0) {
		a.Status = "no"
	}
	return a
}
