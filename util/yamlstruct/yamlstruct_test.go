package yamlstruct_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

type inner struct {
	Wait time.Duration `json:"wait"`
	Any  any           `json:"any"`
}

type outer struct {
	inner
	Name  string            `json:"name"`
	Kind  string            `json:"kind" is:"one|two"`
	Spans map[string]string `json:"spans" is:"span"`
	Count *int              `json:"count"`
	Price float64           `json:"price"`
	On    bool              `json:"on"`
	List  []inner           `json:"list"`
	Kinds []string          `json:"kinds" is:"one|two"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	one := 1
	for text, want := range map[string]outer{
		"{name: x, kind: two, count: 1, price: 2, on: true}": {Name: "x", Kind: "two", Count: &one, Price: 2, On: true},
		"{wait: 1s, any: [1], spans: {a: 3m}}":               {inner: inner{time.Second, []any{int64(1)}}, Spans: map[string]string{"a": "3m"}},
		"{name: 7, count: null, list: [{wait: 2ms}]}":        {Name: "7", List: []inner{{Wait: 2 * time.Millisecond}}},
	} {
		got, problems := decode(t, text)
		require.Empty(t, problems, text)
		require.Equal(t, want, got, text)
	}
	for text, at := range map[string]string{
		"nmae: x": "1:1", "name: [x]": "1:7", "kind: three": "1:7", "spans: {a: soon}": "1:12", "count: -1": "1:8",
		"price: x": "1:8", "on: 1": "1:5", "list: x": "1:7", "list: [{wait: long}]": "1:15", "wait: 5": "1:7", "- x": "1:1",
		"spans: !x {a: 3m}": "1:11", "spans: [a]": "1:8", "kinds: [one, three]": "1:14", "spans: {a: !x 3m}": "1:15",
	} {
		_, problems := decode(t, text)
		require.Len(t, problems, 1, text)
		require.Equal(t, at, problems[0], text)
	}
}

func decode(t *testing.T, text string) (o outer, problems []string) {
	t.Helper()
	doc, err := yamldoc.Parse([]byte(text), yamldoc.Bounds{})
	require.NoError(t, err)
	d := yamlstruct.Decoder{Of: "it", Report: func(at yamldoc.Pos, _, _ string, _ ...any) {
		problems = append(problems, fmt.Sprintf("%d:%d", at.Line, at.Column))
	}}
	d.Decode(doc.Root, &o)
	return o, problems
}
