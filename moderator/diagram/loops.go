package diagram

import "slices"

// markLoops marks the edges that close a loop, so that the graph without them
// has none. Which edge of a loop that is, is a matter of taste: as few as can
// easily be found, so that most edges lead on.
func (g *Graph) markLoops() {
	order := g.walk()
	if len(g.Nodes) > maxNodes { // larger graphs are never drawn, only listed
		return
	}
	loop := g.loops()
	for _, members := range inOrder(order, loop) {
		members = g.settleLoop(members)
		place := map[int]int{}
		for i, n := range members {
			place[n] = i
		}
		for i := range g.Edges {
			e := &g.Edges[i]
			if loop[e.From] == loop[e.To] && loop[e.From] == loop[members[0]] {
				e.Back = place[e.From] >= place[e.To]
			}
		}
	}
}

// walk goes through the graph in depth from $START, marks the edges that lead
// to where it came from, and returns the nodes in an order in which all others
// lead on. It keeps its own stack: a workflow may be thousands of roles deep.
func (g *Graph) walk() []int {
	const (
		unseen = iota
		open   // on the path that leads here
		done
	)
	ways := g.ways()
	state := make([]int, len(g.Nodes))
	next := make([]int, len(g.Nodes)) // of the ways of a node
	var order []int
	for root := range g.Nodes {
		if state[root] != unseen {
			continue
		}
		path := []int{root}
		state[root] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(ways[at]) {
				state[at] = done
				order = append(order, at)
				path = path[:len(path)-1]
				continue
			}
			e := &g.Edges[ways[at][next[at]]]
			next[at]++
			switch state[e.To] {
			case open:
				e.Back = true
			case unseen:
				state[e.To] = open
				path = append(path, e.To)
			}
		}
	}
	slices.Reverse(order)
	return order
}

// loops numbers the nodes so that two have the same number if each can be
// reached from the other.
func (g Graph) loops() []int {
	reach := make([][]bool, len(g.Nodes))
	ways := g.ways()
	for n := range g.Nodes {
		reach[n] = make([]bool, len(g.Nodes))
		for queue := []int{n}; len(queue) > 0; queue = queue[1:] {
			for _, way := range ways[queue[0]] {
				if to := g.Edges[way].To; !reach[n][to] {
					reach[n][to] = true
					queue = append(queue, to)
				}
			}
		}
	}
	number := make([]int, len(g.Nodes))
	for n := range number {
		number[n] = n
		for m := range n {
			if reach[n][m] && reach[m][n] {
				number[n] = m
				break
			}
		}
	}
	return number
}

// inOrder lists the members of each loop in the given order.
func inOrder(order, loop []int) [][]int {
	members := map[int][]int{}
	var numbers []int
	for _, n := range order {
		if members[loop[n]] == nil {
			numbers = append(numbers, loop[n])
		}
		members[loop[n]] = append(members[loop[n]], n)
	}
	var lists [][]int
	for _, number := range numbers {
		lists = append(lists, members[number])
	}
	return lists
}

// settleLoop orders the members of a loop: as the walk met them, or as a reader
// meets them, whichever ends better.
func (g Graph) settleLoop(members []int) []int {
	read := slices.Sorted(slices.Values(members))
	g.sift(members)
	if read[0] != members[0] {
		return members
	}
	g.sift(read)
	if g.cost(read) < g.cost(members) {
		return read
	}
	return members
}

// sift moves each member but the first, by which the loop is entered, to where
// the order is best, until nothing gets better.
func (g Graph) sift(members []int) {
	const most = 60 // each round takes the square of it, times the edges
	if len(members) > most {
		return
	}
	best := g.cost(members)
	for better, rounds := true, 0; better && rounds < 10; rounds++ {
		better = false
		for _, n := range slices.Clone(members[1:]) {
			at := slices.Index(members, n)
			rest := slices.Delete(slices.Clone(members), at, at+1)
			for i := 1; i < len(members); i++ {
				moved := slices.Insert(slices.Clone(rest), i, n)
				if c := g.cost(moved); c < best {
					best, better = c, true
					copy(members, moved)
				}
			}
		}
	}
}

// cost counts the edges that lead back in an order of the members of a loop. A
// member to which no edge leads on would stand at the top, where no reader looks
// for it: that costs more than the edges which it would save.
func (g Graph) cost(members []int) int {
	const astray = 4
	place := make(map[int]int, len(members))
	for i, n := range members {
		place[n] = i
	}
	back := 0
	found := map[int]bool{members[0]: true}
	for _, e := range g.Edges {
		to, inside := place[e.To]
		if !inside {
			continue
		}
		from, inside := place[e.From]
		switch {
		case !inside || from < to:
			found[e.To] = true
		case from > to:
			back++
		}
	}
	return back + astray*(len(members)-len(found))
}
