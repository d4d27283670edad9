package yamldoc

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestOracle parses thousands of damaged documents with this package and with another parser. If both accept
// a text, their trees must be equal: an ambiguous text is worse than a rejected one.
func TestOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	both, refused := 0, 0
	for range 30_000 {
		text := mutant(random)
		if oracleErrs().MatchString(text) {
			continue
		}
		toLibrary, err := oracle(text)
		if err != nil {
			continue
		}
		ours, err := Parse([]byte(text), Bounds{})
		if err != nil {
			refused++
			continue
		}
		both++
		if why := differs(ours.Root, toLibrary); why != "" {
			t.Fatalf("%s, in:\n%s\nquoted: %q", why, text, text)
		}
	}
	t.Logf("both read %d, we refuse %d", both, refused)
	require.Greater(t, both, 5_000, "the mutants say nothing when nobody reads them")
	require.Less(t, refused, both/4, "people's files are refused that others read")
}

// oracleErrs matches what the other parser handles as YAML 1.1 does: within brackets a ':' before one of
// ",]}" as text, a '?' without a space as a key indicator, a ',' as part of a tag, and a ':' as the end of an
// anchor.
func oracleErrs() *regexp.Regexp {
	return regexp.MustCompile(`:[,\]}]|[\[{,\n] *\?[^ \n]|![^ \n]*,|[&*][^ \n]*:`)
}

// oracle parses exactly one document; nil is an empty one.
func oracle(text string) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document")
	}
	return doc.Content[0], nil
}

// differs describes the first difference between two trees; "" if they are equal.
func differs(ours *Node, toLibrary *yaml.Node) string {
	if toLibrary == nil {
		if ours.Kind != Scalar || ours.Scalar != nil {
			return "not empty"
		}
		return ""
	}
	if toLibrary.Kind == yaml.AliasNode {
		toLibrary = toLibrary.Alias
	}
	switch {
	case toLibrary.Kind == yaml.MappingNode && ours.Kind == Mapping:
		if len(toLibrary.Content) != 2*len(ours.Entries) {
			return fmt.Sprintf("line %d: %d keys, not %d", ours.Pos.Line, len(ours.Entries), len(toLibrary.Content)/2)
		}
		for i, e := range ours.Entries {
			if key := toLibrary.Content[2*i]; key.Value != e.Text {
				return fmt.Sprintf("line %d: key %q, not %q", e.Pos.Line, e.Text, key.Value)
			}
			if why := differs(e.Value, toLibrary.Content[2*i+1]); why != "" {
				return why
			}
		}
	case toLibrary.Kind == yaml.SequenceNode && ours.Kind == Sequence:
		if len(toLibrary.Content) != len(ours.Items) {
			return fmt.Sprintf("line %d: %d items, not %d", ours.Pos.Line, len(ours.Items), len(toLibrary.Content))
		}
		for i, item := range ours.Items {
			if why := differs(item, toLibrary.Content[i]); why != "" {
				return why
			}
		}
	case toLibrary.Kind == yaml.ScalarNode && ours.Kind == Scalar:
		if ours.Text != toLibrary.Value {
			return fmt.Sprintf("line %d: %q, not %q", ours.Pos.Line, ours.Text, toLibrary.Value)
		}
	default:
		return fmt.Sprintf("line %d: kind %v, not %v", ours.Pos.Line, ours.Kind, toLibrary.Kind)
	}
	return ""
}

// whole returns the documents that mutants are made from.
func whole() []string {
	return []string{
		"name: solve\ndescription: A few words\nroles:\n  planner:\n    goal: You are: a planner # not this\n    capabilities: [planning, 'it''s', \"tab\\there\"]\n" +
			"    procedure: |\n      First.\n\n        Deeper.\n      Last.\n    output: >-\n      folded\n      text\n\n      end\n" +
			"    frontmatter:\n      type: object\n      properties: {status: {enum: [a, b]}, n: {type: number}}\n      required:\n      - status\n" +
			"graph:\n  $START: {_: {role: planner, prompt: \"Go {{{x}}}.\"}}\n  planner:\n    ready: {role: $END}\n",
		"- a\n-\n  - b\n  - c: 1\n    d: 2\n- - e\n  -\n    f\n- {g: h, i: [j, k]}\n-\n- ~\n",
		"? a key\n: a value\nplain: words over\n  two lines\n\n  and a gap\nurl: http://x/y#z\ncolon:in word\nq: 'single\n\n  over lines'\nd: \"dou\\\n  ble\\u00e9\"\n",
		"base: &b {x: 1}\nsame: *b\nlist: &l\n  - one\nagain: *l\nempty:\nend: !include file.md\n",
		"a: |+\n  keep\n\n\nb: |2-\n   three\nc: >\n  x\n   more\n  y\n\nd: |\n\n  lead\n# comment\ne: 1\n",
		"flow: [\n  a, # one\n  {b: c,\n   d},\n  \"e\": f,\n]\nnext: {a: , b: }\nnull: true\n12: 0x1F\n",
	}
}

// mutant returns one of them, damaged in one to three places.
func mutant(r *rand.Rand) string {
	docs := whole()
	text := docs[r.IntN(len(docs))]
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(6) {
		case 0: // insert a character
			text = text[:at] + string(" \n\t:-#[]{},'\"|>&*!?%@`~\\ax0é"[r.IntN(29)]) + text[at:]
		case 1: // delete one
			text = text[:at] + text[min(len(text), at+1+r.IntN(3)):]
		case 2, 3: // change the indentation of a line
			lines := strings.SplitAfter(text, "\n")
			i := r.IntN(len(lines))
			lines[i] = strings.Repeat(" ", r.IntN(7)) + strings.TrimLeft(lines[i], " ")
			text = strings.Join(lines, "")
		case 4: // copy a line
			lines := strings.SplitAfter(text, "\n")
			i, j := r.IntN(len(lines)), r.IntN(len(lines))
			lines[j] += lines[i]
			text = strings.Join(lines, "")
		case 5: // append the end of another document
			other := docs[r.IntN(len(docs))]
			text = text[:at] + other[r.IntN(len(other)):]
		}
	}
	return strings.TrimRight(text, " ") + "\n" // parsers differ on a missing newline at the end
}
