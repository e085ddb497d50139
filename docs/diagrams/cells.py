"""The recurrent cells: what goes in, what is computed, what is handed to the next step."""

from kit import Diagram


def elman() -> Diagram:
    """One affine layer and a tanh."""
    d = Diagram(
        420,
        230,
        "Elman cell: the state of the step before and the input enter one layer with tanh; "
        "its output is both the output and the state for the next step.",
    )
    d.box(210, 110, w=220, h=130, kind="part")
    d.box(210, 110, "tanh", w=64)
    d.line((20, 110), (178, 110), kind="state")
    d.line((210, 215), (210, 126))
    d.line((242, 110), (400, 110), kind="state")
    d.dot(290, 110)
    d.line((290, 110), (290, 20))
    d.text(48, 90, "$h_{t-1}$")
    d.text(232, 205, "$x_t$")
    d.text(378, 90, "$h_t$")
    d.text(312, 30, "$h_t$")
    d.text(112, 66, "$tanh(W x_t + U h_{t-1} + b)$", "note left")
    return d


def lstm() -> Diagram:
    """Three gates around a cell state that is only scaled and added to."""
    d = Diagram(
        640,
        350,
        "LSTM cell: the cell state runs along the top, is multiplied by the forget gate and gets the input "
        "gate times the candidate added. The output gate times tanh of the cell state is the hidden state.",
    )

    def gate(x: float, name: str, what: str) -> None:
        d.box(x, 205, name, w=50)
        d.line((x, 265), (x, 221))
        d.text(x + 18, 172, what)
        if x < 440:
            d.dot(x, 265)

    d.box(325, 172, w=500, h=256, kind="part")
    d.line((20, 265), (440, 265), kind="state", arrow=False)
    d.line((120, 335), (120, 265), arrow=False)
    d.dot(120, 265)
    d.text(45, 55, "$c_{t-1}$")
    d.text(45, 288, "$h_{t-1}$")
    d.text(100, 325, "$x_t$")
    d.step()  # forget
    d.line((20, 75), (167, 75), kind="state")
    d.op(180, 75, "×")
    gate(180, "σ", "$f_t$")
    d.line((180, 189), (180, 88))
    d.text(174, 130, "forget", "note right")
    d.step()  # write
    gate(270, "σ", "$i_t$")
    gate(355, "tanh", "$c\u0303_t$")
    d.op(330, 140, "×")
    d.line((270, 189), (270, 140), (317, 140))
    d.line((355, 189), (355, 140), (343, 140))
    d.text(262, 125, "write", "note right")
    d.step()  # the new cell state
    d.line((193, 75), (317, 75), kind="state")
    d.op(330, 75, "+")
    d.line((343, 75), (620, 75), kind="state")
    d.line((330, 127), (330, 88))
    d.text(598, 55, "$c_t$")
    d.step()  # show
    gate(440, "σ", "$o_t$")
    d.op(500, 205, "×")
    d.line((465, 205), (487, 205))
    d.text(434, 240, "show", "note right")
    d.step()  # the hidden state
    d.dot(500, 75)
    d.line((500, 75), (500, 112))
    d.box(500, 125, "tanh", w=50, h=26, kind="plain")
    d.line((500, 138), (500, 192))
    d.line((500, 218), (500, 265), (620, 265), kind="state")
    d.dot(545, 265)
    d.line((545, 265), (545, 20))
    d.text(598, 288, "$h_t$")
    d.text(564, 30, "$h_t$")
    return d


def gru() -> Diagram:
    """Two gates and no separate cell state."""
    d = Diagram(
        640,
        330,
        "GRU cell: the reset gate scales the old state before it enters the candidate; the update gate mixes "
        "the old state and the candidate into the new state.",
    )
    d.box(325, 165, w=500, h=250, kind="part")
    d.line((20, 75), (427, 75), kind="state")
    d.op(440, 75, "×")
    d.line((453, 75), (507, 75), kind="state")
    d.op(520, 75, "+")
    d.line((533, 75), (620, 75), kind="state")
    d.dot(110, 75)
    d.line((110, 75), (110, 255), (330, 255), arrow=False)
    d.line((150, 315), (150, 255), arrow=False)
    d.dot(150, 255)
    d.box(200, 200, "σ", w=50)
    d.box(330, 200, "σ", w=50)
    d.box(440, 200, "tanh", w=54)
    d.dot(200, 255)
    d.line((200, 255), (200, 216))
    d.line((330, 255), (330, 216))
    d.op(200, 130, "×")
    d.line((200, 184), (200, 143))
    d.dot(200, 75)
    d.line((200, 75), (200, 117))
    d.line((213, 130), (378, 130), (378, 200), (413, 200))
    d.line((150, 282), (440, 282), (440, 216))
    d.dot(150, 282)
    d.line((330, 184), (330, 105), (440, 105), (440, 88))
    d.op(520, 150, "×")
    d.line((467, 200), (520, 200), (520, 163))
    d.line((520, 137), (520, 88))
    d.line((440, 105), (480, 105), (480, 150), (507, 150))
    d.dot(560, 75)
    d.line((560, 75), (560, 20))
    d.text(45, 55, "$h_{t-1}$")
    d.text(600, 98, "$h_t$")
    d.text(580, 30, "$h_t$")
    d.text(130, 305, "$x_t$")
    d.text(222, 165, "$r_t$")
    d.text(352, 165, "$u_t$")
    d.text(492, 185, "$n_t$")
    d.text(420, 58, "$u_t$", "note")
    d.text(500, 128, "$1-u_t$", "note")
    return d


def peephole() -> Diagram:
    """An LSTM whose gates also see the cell state."""
    d = lstm()
    d.alt = (
        "Peephole LSTM: as the LSTM, and dashed lines lead the old cell state to the forget and input gates "
        "and the new one to the output gate."
    )
    d.line((140, 75), (140, 195), (155, 200), kind="back")
    d.line((140, 150), (225, 150), (245, 195), kind="back", bend=12)
    d.line((415, 75), (415, 178), (430, 189), kind="back")
    return d


def coupled() -> Diagram:
    """Writing and forgetting are one decision: i = 1 - f."""
    d = Diagram(
        560,
        300,
        "Coupled gates: one gate decides how much of the old cell state stays, and what it leaves free is "
        "filled by the candidate.",
    )
    d.box(290, 145, w=400, h=220, kind="part")
    d.line((20, 75), (187, 75), kind="state")
    d.op(200, 75, "×")
    d.line((213, 75), (357, 75), kind="state")
    d.op(370, 75, "+")
    d.line((383, 75), (540, 75), kind="state")
    d.box(200, 190, "σ", w=50)
    d.box(370, 190, "tanh", w=54)
    d.line((200, 174), (200, 88))
    d.dot(200, 130)
    d.line((200, 130), (357, 130))
    d.op(370, 130, "×")
    d.line((370, 174), (370, 143))
    d.line((370, 117), (370, 88))
    d.text(280, 116, "$1-f_t$", "note")
    d.text(220, 155, "$f_t$")
    d.text(390, 160, "$c\u0303_t$")
    d.text(45, 55, "$c_{t-1}$")
    d.text(515, 55, "$c_t$")
    d.line((290, 290), (290, 232), arrow=False)
    d.line((290, 232), (200, 232), (200, 206))
    d.line((290, 232), (370, 232), (370, 206))
    d.dot(290, 232)
    d.text(345, 280, "$x_t$ and $h_{t-1}$")
    return d


def light() -> Diagram:
    """The gate depends on the input alone, so all gates of a sequence are computed at once."""
    d = Diagram(
        560,
        260,
        "Light cell: gate and candidate are computed from the input alone; the state is only mixed, "
        "element by element, so all steps can be computed in parallel.",
    )
    d.box(290, 120, w=400, h=190, kind="part")
    d.line((20, 70), (197, 70), kind="state")
    d.op(210, 70, "×")
    d.line((223, 70), (357, 70), kind="state")
    d.op(370, 70, "+")
    d.line((383, 70), (540, 70), kind="state")
    d.box(210, 165, "σ", w=50)
    d.box(370, 165, "$W x_t$", w=64)
    d.line((210, 149), (210, 83))
    d.op(370, 118, "×")
    d.line((370, 149), (370, 131))
    d.line((370, 105), (370, 83))
    d.dot(210, 118)
    d.line((210, 118), (357, 118))
    d.text(285, 106, "$1-u_t$", "note")
    d.text(228, 140, "$u_t$", "left")
    d.line((290, 250), (290, 205), arrow=False)
    d.line((290, 205), (210, 205), (210, 181))
    d.line((290, 205), (370, 205), (370, 181))
    d.dot(290, 205)
    d.dot(450, 70)
    d.line((450, 70), (450, 15))
    d.text(45, 50, "$h_{t-1}$")
    d.text(518, 50, "$h_t$")
    d.text(470, 22, "$h_t$")
    d.text(310, 242, "$x_t$")
    return d


def matrix_state() -> Diagram:
    """A matrix that fades, is written under a key and is read with a query."""
    d = Diagram(
        600,
        280,
        "A matrix as state: the old matrix is multiplied by a decay, the product of key and value is added, "
        "and the query reads the new matrix. Decay, key, value and query depend on the input alone.",
    )
    d.box(300, 130, w=440, h=210, kind="part")
    d.line((20, 70), (137, 70), kind="state")
    d.op(150, 70, "×")
    d.line((163, 70), (272, 70), kind="state")
    d.op(285, 70, "+")
    d.line((298, 70), (580, 70), kind="state")
    d.box(150, 180, "$W_a x_t$", w=74)
    d.box(245, 180, "$W_k x_t$", w=74)
    d.box(330, 180, "$W_v x_t$", w=74)
    d.box(430, 180, "$W_q x_t$", w=74)
    d.line((150, 164), (150, 83))
    d.op(285, 122, "×")
    d.line((245, 164), (245, 122), (272, 122))
    d.line((330, 164), (330, 122), (298, 122))
    d.line((285, 109), (285, 83))
    d.dot(390, 70)
    d.line((390, 70), (390, 122), (417, 122))
    d.op(430, 122, "×")
    d.line((430, 164), (430, 135))
    d.line((443, 122), (580, 122))
    d.line((290, 270), (290, 222), arrow=False)
    d.line((150, 222), (430, 222), arrow=False)
    for x in (150, 245, 330, 430):
        d.line((x, 222), (x, 196))
    d.dot(290, 222)
    d.text(50, 50, "$S_{t-1}$")
    d.text(556, 50, "$S_t$")
    d.text(556, 144, "$o_t$")
    d.text(308, 262, "$x_t$")
    d.text(166, 120, "$a_t$", "left")
    d.text(232, 144, "$k_t$", "right")
    d.text(342, 144, "$v_t$", "left")
    d.text(442, 150, "$q_t$", "left")
    return d


def unrolled() -> Diagram:
    """The same cell at every step; gradients go the same way back."""
    d = Diagram(
        720,
        270,
        "A recurrent network unrolled over four steps: the same cell and weights at each step. Dashed arrows "
        "show the gradient of the loss at the last step going back through every state.",
    )
    for step in range(4):
        x = 130 + 150 * step
        d.box(x, 135, "cell", w=70, h=46)
        d.line((x, 225), (x, 158))
        d.text(x, 240, f"$x_{step + 1}$")
        d.line((x, 112), (x, 62))
        d.text(x, 46, f"$y_{step + 1}$")
        d.line((x + 35, 130), (x + 115, 130), kind="state")
        d.text(x + 75, 112, f"$h_{step + 1}$")
        if step:
            d.line((x - 35, 147), (x - 115, 147), kind="back")
    d.line((20, 130), (95, 130), kind="state")
    d.text(48, 112, "$h_0$")
    d.line((600, 62), (600, 112), kind="back")
    d.text(640, 80, "$∂L/∂y_4$", "left")
    d.text(355, 262, "gradient: one product with the Jacobian $∂h_t/∂h_{t-1}$ per step", "note")
    return d
