package workflowdiff

// context is how many equal lines are shown beside those that differ.
const context = 2

// lineDiff marks the lines of two texts with "-", "+" or " ", leaving out equal
// lines far from any other. Of texts with very many lines in between, none is
// found to be equal: that would cost the square of it.
func lineDiff(a, b []string) []string {
	const most = 2000
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var marked []string
	for _, line := range a[:head] {
		marked = append(marked, "  "+line)
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) > most || len(y) > most {
		marked = append(marked, each("- ", x)...)
		marked = append(marked, each("+ ", y)...)
	} else {
		marked = append(marked, match(x, y)...)
	}
	for _, line := range a[len(a)-tail:] {
		marked = append(marked, "  "+line)
	}
	return near(marked)
}

func each(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}

// match finds the longest common subsequence.
func match(a, b []string) []string {
	longest := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return append(append(out, each("- ", a[i:])...), each("+ ", b[j:])...)
}

// near leaves out equal lines that have no other near them.
func near(marked []string) []string {
	keep := make([]bool, len(marked))
	for i, line := range marked {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-context); k <= min(len(marked)-1, i+context); k++ {
			keep[k] = true
		}
	}
	var out []string
	for i, line := range marked {
		switch {
		case keep[i]:
			out = append(out, line)
		case i == 0 || keep[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}
