package gitfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Address{
		"github:a/b//c/d.yaml@v1":            {URL: "https://github.com/a/b", Path: "c/d.yaml", Ref: "v1"},
		"github:a/b//d.yml":                  {URL: "https://github.com/a/b", Path: "d.yml", Ref: "HEAD"},
		"https://h.test/a.git//d.yaml@x/y":   {URL: "https://h.test/a.git", Path: "d.yaml", Ref: "x/y"},
		"git@h.test:a/b.git//d.yaml@v1":      {URL: "git@h.test:a/b.git", Path: "d.yaml", Ref: "v1"},
		"ssh://git@h.test/a/b.git//d.yaml@1": {URL: "ssh://git@h.test/a/b.git", Path: "d.yaml", Ref: "1"},
		"file:///tmp/a//d.yaml@v1":           {URL: "file:///tmp/a", Path: "d.yaml", Ref: "v1"},
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		want.Text = text
		require.Equal(t, want, got)
	}
	for _, text := range []string{
		"github:a//b.yaml", "github:a/b", "github:-a/b//c.yaml", "https://h.test/d.yaml", "http://h.test/a//d.yaml", "ext::sh -c x://a//d.yaml",
		"github:a/b//../d.yaml", "github:a/b//-d.yaml", "github:a/b//d.txt", "github:a/b//d.yaml@-x", "github:a/b//d.yaml@a..b", "github:a/b//d.yaml@a b", "file://x//d.yaml",
	} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}

// An address is displayed, and stored in a committed file.
func TestParseTakesNoPassword(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"https://bob:sesame@h.test/a.git//d.yaml@v1", "https://sesame@h.test/a.git//d.yaml", "ssh://git:sesame@h.test/a//d.yaml", "http://bob:sesame@h.test/d.yaml",
		"https://bob:ses/ame@h.test/a//d.yaml", "https://bob:sesame@h.test/" + strings.Repeat("a", 2000) + "//d.yaml",
	} {
		_, err := Parse(text)
		prosetest.Error(t, err, text)
		require.NotContains(t, err.Error(), "ame@")
	}
}
