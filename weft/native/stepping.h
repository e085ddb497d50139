// What a search (searching.cpp) asks of a model (writing.h, recurrent.h): one step of some of its sources. A model keeps what it
// remembers of B sources with up to W hypotheses each, and finds it by the numbers of source and hypothesis.
#pragma once

#include "common.h"

struct Step {
  Int slab;            // of this thread; a model has buffers for each
  Int time;            // steps before this one
  Int sources, width;  // sources of this call, and hypotheses of each: 1 at the first step, then W
  const Int *number;   // [sources], ascending
  const Int *parent;   // [sources, width], which hypothesis of the step before each one continues
  const Int *token;    // [sources, width], its last token
  float *logp;         // [sources, width, V], the result
};

typedef void (*Take)(const void *model, const Step *step);
