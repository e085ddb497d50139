// One token drawn from a row of log-probabilities, narrowed as in search/sampling.py and in its order: banned tokens,
// temperature, the k likeliest, the likeliest that hold a share of the probability. All sums are in double.
#pragma once

#include "choosing.h"

#include <algorithm>

struct Narrowing {
  double temperature, share;  // share: 1 keeps every token
  Int likeliest;              // 0 keeps every token
};

namespace {

struct Chance {
  double value, weight;  // log-probability, and its power after the temperature
  Int token;
};

inline bool likelier(const Chance &a, const Chance &b) {
  return a.value > b.value || (a.value == b.value && a.token < b.token);
}

// The possible tokens, of which the likeliest alone if that is asked for; how many there are.
inline Int possible(const Narrowing &how, const float *x, Int classes, const Int *banned, Chance *found) {
  Int count = 0;
  if (!how.likeliest) {
    for (Int v = 0; v < classes; v++) {
      while (*banned < v) banned++;
      if (*banned != v && x[v] > -INFINITY) found[count++] = {x[v], 0, v};
    }
    return count;
  }
  double *value = (double *)(found + classes);
  Int *parent = (Int *)(value + classes), *token = parent + classes;
  Best best = {value, parent, token, how.likeliest, 0};
  scan(best, x, classes, 0, 0, banned);
  for (; count < best.found; count++) found[count] = {value[count], 0, token[count]};
  return count;
}

// The smallest set of the likeliest tokens that holds the share: each one before which less has been counted.
inline Int nucleus(double share, Chance *found, Int count, double sum) {
  const double least = sum * (1 - share) / (2 * count);  // fewer to sort: all below it hold less than 1 - share
  count = std::remove_if(found, found + count, [&](const Chance &c) { return c.weight < least; }) - found;
  std::sort(found, found + count, likelier);
  double before = 0;
  Int kept = 0;
  for (; kept < count && before < share; kept++) before += found[kept].weight / sum;
  return kept;
}

// The token whose part of the cumulative distribution contains the uniform number; -1 if no token is possible.
// room: 6 V numbers of 8 bytes.
inline Int draw(const Narrowing &how, const float *x, Int classes, const Int *banned, double uniform, void *room) {
  Chance *found = (Chance *)room;
  Int count = possible(how, x, classes, banned, found);
  if (!count) return -1;
  double top = -INFINITY, sum = 0, past = 0;
  for (Int i = 0; i < count; i++) top = found[i].value > top ? found[i].value : top;
  if (!(top <= 1e-3)) return -1;  // as check_best does
  for (Int i = 0; i < count; i++)
    sum += found[i].weight = std::exp(found[i].value / how.temperature - top / how.temperature);
  if (how.share < 1) count = nucleus(how.share, found, count, sum);
  if (how.likeliest || how.share < 1)
    std::sort(found, found + count, [](const Chance &a, const Chance &b) { return a.token < b.token; });
  sum = 0;
  for (Int i = 0; i < count; i++) sum += found[i].weight;
  const double place = std::min(uniform * sum, std::nextafter(sum, 0.0));
  for (Int i = 0; i < count; i++)
    if ((past += found[i].weight) > place) return found[i].token;
  return found[count - 1].token;
}

}  // namespace
