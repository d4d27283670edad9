package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page of many steps gets what has changed, not itself.
func TestParts(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("many")
	for range stepsAtOnce {
		s.step(id, "more", strings.Repeat("word ", 200))
	}
	before, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	whole := s.get("thread/"+id, http.StatusOK)
	require.Contains(t, whole, `data-last="`+string(before)+`"`)
	s.step(id, "more", "the newest")
	got := s.get("thread/"+id+"?part=about,act,flight,kids,steps,time,facts,graph&after="+string(before), http.StatusOK)
	t.Log(len(whole), "bytes; changed:", len(got))
	require.Contains(t, got, "data-append")
	require.Contains(t, got, "the newest")
	require.NotContains(t, got, "word word")
	require.NotContains(t, got, "<html")
	require.LessOrEqual(t, len(got), 20_000)

	flight := s.get("thread/"+id+"?part=flight", http.StatusOK)
	require.True(t, strings.HasPrefix(strings.TrimSpace(flight), `<div id="part-flight"`), flight)
	require.NotContains(t, flight, "part-steps")
	require.NotContains(t, s.get("thread/"+id+"?part=steps&after=0000000000000", http.StatusOK), "data-append")
	require.Empty(t, s.get("thread/"+id+"?part=x,../top,"+strings.Repeat("y,", 1000), http.StatusOK))
	require.Contains(t, s.get("?part=waiting", http.StatusOK), `id="part-waiting"`)
	require.Contains(t, s.get("threads?part=threads", http.StatusOK), `id="part-threads"`)
}

func TestCompareByName(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	old, newest := s.start("one"), s.start("two")
	require.Contains(t, s.get("diff", http.StatusOK), `<option value="`+old+`"`)
	require.Contains(t, s.get("diff?a="+old+"&b=@", http.StatusOK), newest)
	s.get("diff?a=@&b=@nobody", http.StatusNotFound)
	narrowed := s.get("diff?q=two&a="+old, http.StatusOK)
	require.Equal(t, 2, strings.Count(narrowed, `<option value="`+newest+`">`), "both lists have what matches")
	require.Equal(t, 1, strings.Count(narrowed, `<option value="`+old+`" selected>`), "what was chosen stays")
	require.NotContains(t, s.get("diff?q=two", http.StatusOK), old)
	s.get("thread/"+old+"/changes", http.StatusOK)
}

func TestNamedTokens(t *testing.T) {
	t.Parallel()
	ann, bob := strings.Repeat("a", 40), strings.Repeat("b", 40)
	g := &guard{secret: "x", place: place{token: "ann " + ann + "\n" + bob, scheme: "https"}}
	for token, want := range map[string]string{ann: "ann", bob: ""} {
		name, ok := g.nameOf(token)
		require.True(t, ok)
		require.Equal(t, want, name)
		r, err := http.NewRequest(http.MethodGet, "/", nil)
		require.NoError(t, err)
		r.AddCookie(&http.Cookie{Name: g.cookie(), Value: g.cookieFor(name)})
		name, ok = g.who(r)
		require.True(t, ok)
		require.Equal(t, want, name)
	}
	for _, token := range []string{"", "ann", "ann " + ann, ann + "\n" + bob, ann + bob} {
		_, ok := g.nameOf(token)
		require.False(t, ok, token)
	}
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	require.NoError(t, err)
	_, mac, _ := strings.Cut(g.cookieFor("ann"), ".")
	r.AddCookie(&http.Cookie{Name: g.cookie(), Value: "Ym9i." + mac})
	_, ok := g.who(r)
	require.False(t, ok)
}
