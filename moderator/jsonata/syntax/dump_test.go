package syntax

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// dump formats a tree as one line. Each node's name is followed by its offset and by what its brackets add.
func dump(n Node) string {
	if n == nil {
		return "_"
	}
	c := n.Shared()
	at := fmt.Sprintf("@%d", c.At)
	var s string
	switch n := n.(type) {
	case *Path:
		s = "path" + at + list(n.Steps)
		if n.KeepSingleton {
			s += "+keep"
		}
	case *Name:
		s = "." + n.Name + at
	case *Variable:
		s = "$" + n.Name + at
	case *Wildcard:
		s = "*" + at
	case *Descendants:
		s = "**" + at
	case *String:
		s = Quote(n.Text) + at
	case *Number:
		s = jsnumber.Format(n.Value) + at
	case *Const:
		s = fmt.Sprint(n.Value) + at
	case *Array:
		s = "array" + at + list(n.Items) + mark(n.Whole, "+whole")
	case *Range:
		s = "range" + at + list([]Node{n.From, n.To})
	case *Object:
		s = "object" + at + pairs(n.Group)
	case *Block:
		s = "block" + at + list(n.Exprs) + mark(n.whole, "+whole")
	case *Bind:
		s = "bind$" + n.Name + at + list([]Node{n.Value})
	case *Negate:
		s = "neg" + at + list([]Node{n.Operand})
	case *Binary:
		s = n.Op + at + list([]Node{n.Left, n.Right})
	case *Condition:
		s = "if" + at + list([]Node{n.Condition, n.Then, n.Otherwise})
	case *Call:
		s = "call" + at + list(append([]Node{n.Function}, n.Args...)) + mark(n.Partial, "+partial")
	case *Apply:
		s = "~>" + at + list([]Node{n.Left, n.Right})
	case *Lambda:
		s = "func" + at + "(" + strings.Join(n.Params, " ") + ")"
		if n.Signature != nil {
			s += fmt.Sprintf("<%d>", len(n.Signature))
		}
		s += list([]Node{n.Body})
	case *Pattern:
		s = "regex" + at + "/" + n.Regex.Source + "/"
	case *Sort:
		s = "sort" + at + "("
		for i, t := range n.Terms {
			s += mark(i > 0, " ") + mark(t.Descending, ">") + dump(t.By)
		}
		s += ")"
	}
	for _, f := range c.Filters {
		s += "[" + dump(f) + "]"
	}
	for _, f := range c.Stages {
		s += "[stage " + dump(f) + "]"
	}
	if c.Group != nil {
		s += pairs(*c.Group)
	}
	return s + mark(c.Keep, "[]")
}

func mark(set bool, text string) string {
	if set {
		return text
	}
	return ""
}

func list(nodes []Node) string {
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = dump(n)
	}
	return "(" + strings.Join(texts, " ") + ")"
}

func pairs(g Group) string {
	texts := make([]string, len(g.Pairs))
	for i, p := range g.Pairs {
		texts[i] = dump(p.Key) + ":" + dump(p.Value)
	}
	return fmt.Sprintf("{@%d %s}", g.At, strings.Join(texts, ", "))
}
