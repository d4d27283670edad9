package jsonschema

import (
	"fmt"
	"slices"
	"strings"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// noVariant reports a value that fits none of several schemas. If a property
// tells the variants apart, only the one that is meant counts.
func (r reporter) noVariant(p place, causes []*lib.ValidationError) []Problem {
	variants, _ := p.schema[p.keyword].([]any)
	if name, values := Discriminator(variants); name != "" {
		if object, ok := p.value.(map[string]any); ok {
			return r.discriminated(p, object, name, values, causes)
		}
	}
	reports := make([][]Problem, len(causes))
	for i, cause := range causes {
		reports[i] = sorted(r.problems(cause))
	}
	if want := wantedTypes(p, reports, variants); want != "" {
		return problem(p.path, "must be "+want+", but is "+show(p.value))
	}
	if best := onlyRightType(p, reports); best >= 0 {
		return reports[best]
	}
	return problem(p.path, listVariants(reports))
}

// discriminated reports the problems of the variant that an object claims to
// be, or that it claims to be none.
func (r reporter) discriminated(p place, object map[string]any, name string, values []any, causes []*lib.ValidationError) []Problem {
	path := p.path + "/" + escape(name)
	claimed, ok := object[name]
	if !ok {
		return problem(path, "is required, but missing; it must be "+oneOfThese(values))
	}
	i := slices.IndexFunc(values, func(v any) bool { return equal(v, claimed) })
	if i < 0 {
		return problem(path, "must be "+oneOfThese(values)+", but is "+show(claimed))
	}
	return r.problems(causes[i])
}

// wantedTypes joins what the variants want if each of them only says that the
// whole value is not of its type.
func wantedTypes(p place, reports [][]Problem, variants []any) string {
	var want []string
	for i, report := range reports {
		simple := wanted(variants[i])
		if len(report) != 1 || report[0].Path != p.path || simple == "" || !strings.HasPrefix(report[0].Message, "must be "+simple) {
			return ""
		}
		want = append(want, simple)
	}
	return strings.Join(want, " or ")
}

// onlyRightType returns the variant that complains about parts of the value
// while all others complain about the whole, or -1.
func onlyRightType(p place, reports [][]Problem) int {
	best := -1
	for i, report := range reports {
		aboutWhole := slices.ContainsFunc(report, func(q Problem) bool { return q.Path == p.path })
		if aboutWhole {
			continue
		}
		if best >= 0 {
			return -1
		}
		best = i
	}
	return best
}

// listVariants says in one line why each of the first variants does not fit.
func listVariants(reports [][]Problem) string {
	const limit = 3
	lines := make([]string, 0, limit)
	for i, report := range reports[:min(limit, len(reports))] {
		lines = append(lines, fmt.Sprintf("(%d) %s", i+1, report[0]))
	}
	msg := fmt.Sprintf("fits none of %d variants: %s", len(reports), strings.Join(lines, "; "))
	if len(reports) > limit {
		msg += "; …"
	}
	return msg
}

// variantNames names the variants by their titles or their order.
func variantNames(p place) string {
	variants, _ := p.schema[p.keyword].([]any)
	names := make([]string, 0, len(variants))
	for i, v := range variants {
		if title, ok := valueAt(v, "title").(string); ok {
			names = append(names, title)
			continue
		}
		names = append(names, fmt.Sprint(i+1))
	}
	return "the variants are " + strings.Join(names, ", ")
}
