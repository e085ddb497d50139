// Times of series: texts as times, and the regular times that a series should have. A time is seconds since 1970 of a clock.
// Read next: series.js.

const DAY = 86400;
const seconds = (year, month, day, hour = 0, minute = 0, second = 0) => { const found = new Date(0); found.setUTCFullYear(year, month, day); found.setUTCHours(hour, minute, second); return found.getTime() / 1000; };
const parts = (time) => { const date = new Date(time * 1000); return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate(), weekday: (date.getUTCDay() + 6) % 7 }; };
const written = (time) => { const text = new Date(time * 1000).toISOString(); return `${text.slice(0, 10)} ${text.slice(11, 19)}`; };
const monthOf = (time) => { const { year, month } = parts(time); return year * 12 + month; };
const monthStart = (number) => seconds(Math.floor(number / 12), ((number % 12) + 12) % 12, 1);
const lastDay = (number) => monthStart(number + 1) - DAY;

// Seconds from UTC to the clocks of a zone (UTC, +02:00 or Europe/Zagreb) at a time in UTC.
function offsetAt(zone, time) {
  if (!zone.includes('/')) {
    const found = /^(?:UTC|Z)?([+-]\d\d):?(\d\d)?$/.exec(zone);
    return found ? Math.sign(Number(`${found[1]}1`)) * (Math.abs(Number(found[1])) * 3600 + Number(found[2] ?? 0) * 60) : 0;
  }
  const shown = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }).formatToParts(time * 1000);
  const { year, month, day, hour, minute, second } = Object.fromEntries(shown.map(({ type, value }) => [type, Number(value)]));
  return seconds(year, month - 1, day, hour, minute, second) - time;
}

const offsetOfClock = (zone, clock) => offsetAt(zone, clock - offsetAt(zone, clock));
const signed = (offset) => `${offset < 0 ? '-' : '+'}${new Date(Math.abs(offset) * 1000).toISOString().slice(11, 16)}`;

// Increasing times from texts, and their zone: an offset, a name or ''. `base` is the zone of the training times.
export function parsed(texts, base, days) {
  const zones = new Set(), found = texts.map((text) => {
    let plain = text.trim().replaceAll('/', '-');
    const quarter = /^(\d{4})-?Q([1-4])$/i.exec(plain);
    if (quarter) plain = `${quarter[1]}-${String(3 * quarter[2] - 2).padStart(2, '0')}`;
    plain += { 4: '-01-01', 7: '-01' }[plain.length] ?? '';
    const match = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?)?$/.exec(plain);
    if (!match) throw new Error(`“${text.slice(0, 40)}” is not a time; write 2024-01-31 or 2024-01-31 13:00.`);
    const [year, month, day, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map((one) => (one === undefined ? undefined : Number(one)));
    let clock = seconds(year, month - 1, day, hour, minute, second), offset = match[7] === undefined ? null : offsetAt(match[7] === 'Z' ? '+00:00' : match[7], 0);
    if (written(clock).slice(0, 10) !== match.slice(1, 4).join('-')) throw new Error(`“${text.slice(0, 40)}” is not a time.`);
    if (base && offset === null && (hour || minute)) throw new Error(`Expected an offset from UTC as in training (${base}), got ${text.slice(0, 40)}.`);
    if (base && offset !== null) clock = clock - offset + (days || !base.includes('/') ? offsetAt(base, clock - offset) : 0);
    zones.add(base || (offset === null ? '' : signed(offset)));
    return clock;
  });
  if (zones.size > 1) throw new Error('Expected times with one offset from UTC, got several; write them in UTC.');
  const wrong = found.findIndex((time, at) => at && time <= found[at - 1]);
  if (wrong > 0) throw new Error(`${texts[wrong]} comes after ${texts[wrong - 1]}; sort the rows and keep each time once.`);
  return { times: found, zone: [...zones][0] };
}

// The same times as clocks show them, and as texts with their offsets from UTC.
export function local(times, zone, days) {
  if (!zone) return { clocks: times, texts: times.map(written) };
  const converted = !days && zone.includes('/'), clocks = converted ? times.map((time) => time + offsetAt(zone, time)) : times;
  return { clocks, texts: clocks.map((clock, at) => written(clock) + signed(converted ? clock - times[at] : offsetOfClock(zone, clock))) };
}

// All times of a series, those without a row too, and `more` times after the last one.
export function every(times, step, more) {
  const first = times[0], last = times.at(-1), day = first - (((first % DAY) + DAY) % DAY), time = first - day;
  const workday = (count) => { // after `count` workdays; a weekend begins on Monday
    const weekday = parts(day).weekday, begin = weekday > 4 ? day + (7 - weekday) * DAY : day, place = (weekday > 4 ? 0 : weekday) + count;
    return begin - (weekday > 4 ? 0 : weekday) * DAY + (Math.floor(place / 5) * 7 + (place % 5)) * DAY;
  };
  const workdays = () => { let count = 0; for (let one = day; one < last - (((last % DAY) + DAY) % DAY); one += DAY) count += parts(one).weekday < 5; return count; };
  const count = step.seconds ? Math.floor((last - first) / step.seconds) : step.business ? workdays() : Math.floor((monthOf(last) - monthOf(first)) / step.months);
  if (count > 21 * times.length + 100) throw new Error(`Expected regular times, got ${times.length} rows from ${written(first)} to ${written(last)}.`);
  const ends = step.months && times.every((one) => one - (((one % DAY) + DAY) % DAY) === lastDay(monthOf(one)));
  const latest = Math.max(...times.map((one) => one - (((one % DAY) + DAY) % DAY) - monthStart(monthOf(one)))); // February has less
  const grid = Array.from({ length: count + 1 + more }, (_, at) => {
    if (step.seconds) return first + at * step.seconds;
    if (step.business) return workday(at) + time;
    const month = monthOf(first) + at * step.months;
    return (ends ? lastDay(month) : Math.min(monthStart(month) + latest, lastDay(month))) + time;
  });
  const known = new Set(grid.slice(0, count + 1)), odd = times.find((one) => !known.has(one));
  if (odd !== undefined) throw new Error(`Expected regular times as in training, got ${written(odd)}; correct it.`);
  return grid;
}

// The hour, the weekday, the day of the month and the month, from -0.5 to 0.5.
export function calendar(time) {
  const { day, month, weekday } = parts(time);
  return [(((time % DAY) + DAY) % DAY) / DAY, weekday / 6, (day - 1) / 30, month / 11].map((value) => value - 0.5);
}

// Times in one format: as dates if none has a time of day.
export function shown(texts) {
  return texts.every((text) => text.endsWith(' 00:00:00')) ? texts.map((text) => text.slice(0, -9)) : texts;
}
